import java.util.LinkedHashMap;
import java.util.Map;

/** Runs every test once for each way to use the driver; ends with "N passed, N failed". */
public final class Main {
    /** Connection properties that make the driver speak differently. */
    private static final Map<String, String> MODES = new LinkedHashMap<>();

    static {
        MODES.put("default", "");
        // Named statements and binary transfer from the first execution on.
        MODES.put("prepared", "prepareThreshold=-1");
        // Multi-row inserts out of batches; an early switch to named statements.
        MODES.put("rewritten", "reWriteBatchedInserts=true&prepareThreshold=2");
        // Parameters of type unknown instead of varchar.
        MODES.put("unspecified", "stringtype=unspecified&binaryTransfer=false");
        MODES.put("autosave", "autosave=always");
    }

    public static void main(String[] arguments) throws Exception {
        int passed = 0;
        int failed = 0;
        for (Map.Entry<String, String> mode : MODES.entrySet()) {
            try (Pair pair = Pair.open(mode.getValue())) {
                Map<String, Suite.Test> tests = new LinkedHashMap<>();
                Values.addTo(tests, pair);
                Statements.addTo(tests, pair);
                Protocol.addTo(tests, pair);
                for (Map.Entry<String, Suite.Test> test : tests.entrySet()) {
                    String name = mode.getKey() + ": " + test.getKey();
                    if (arguments.length > 0 && !name.contains(arguments[0])) {
                        continue;
                    }
                    try {
                        pair.clear();
                        test.getValue().run();
                        passed += 1;
                    } catch (Exception | AssertionError error) {
                        failed += 1;
                        System.out.println("FAILED " + name + ": " + error);
                        pair.reconnect();
                    }
                }
            }
        }
        System.out.println(passed + " passed, " + failed + " failed");
        System.exit(failed == 0 && passed > 0 ? 0 : 1);
    }
}
