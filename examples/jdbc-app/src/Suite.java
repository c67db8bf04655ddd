import java.util.Arrays;
import java.util.Random;

/** What every test uses: the kind of a test, sample values, a check. */
final class Suite {
    static final int THRESHOLD = 2048;
    static final String BODY = prose(20_000);
    static final String LARGE = noise(65_536, 1);
    static final String DATA = document(150);
    static final byte[] RAW = bytes(THRESHOLD + 1, 2);
    static final byte[] MAGIC = {(byte) 0xf7, 'T', 'O', 'A', 'S', 'T', '\r', '\n'};

    /** One test; it fails by throwing. */
    interface Test {
        void run() throws Exception;
    }

    private Suite() {}

    static void check(boolean right, String what) {
        if (!right) {
            throw new AssertionError(what);
        }
    }

    /** Text that compresses. */
    static String prose(int size) {
        String text = "The quick brown fox jumps over the lazy dog, and it's \"quoted\".\n";
        return text.repeat(size / text.length() + 1).substring(0, size);
    }

    /** Text that does not compress. */
    static String noise(int size, long seed) {
        String letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
        Random random = new Random(seed);
        StringBuilder text = new StringBuilder(size);
        for (int n = 0; n < size; n++) {
            text.append(letters.charAt(random.nextInt(64)));
        }
        return text.toString();
    }

    static byte[] bytes(int size, long seed) {
        byte[] bytes = new byte[size];
        new Random(seed).nextBytes(bytes);
        return bytes;
    }

    static byte[] afterMagic(byte[] rest) {
        byte[] all = Arrays.copyOf(MAGIC, MAGIC.length + rest.length);
        System.arraycopy(rest, 0, all, MAGIC.length, rest.length);
        return all;
    }

    static String document(int items) {
        StringBuilder text = new StringBuilder("{\"zebra\": 1, \"a\": 2, \"title\": \"it's\", \"items\": [");
        for (int n = 0; n < items; n++) {
            text.append(n == 0 ? "" : ", ").append("{\"name\": \"item ").append(n).append("\", \"price\": 1.250}");
        }
        return text.append("]}").toString();
    }
}
