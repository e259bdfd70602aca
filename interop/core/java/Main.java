package interop;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;

/**
 * Runs programs in one process, or some of their cases: {@code Main <broker url> <program>[,<program>...] [<start of a
 * case's name>]}.
 */
public final class Main {
    private static final Map<String, Supplier<Program>> PROGRAMS = new LinkedHashMap<>();

    static {
        PROGRAMS.put("core-connections", Connections::new);
        PROGRAMS.put("core-bodies", Bodies::new);
        PROGRAMS.put("core-headers", Headers::new);
        PROGRAMS.put("core-acknowledgement", Acknowledgement::new);
        PROGRAMS.put("core-transactions", Transactions::new);
        PROGRAMS.put("core-xa", XaBranches::new);
        PROGRAMS.put("core-windows", Windows::new);
        PROGRAMS.put("core-order", Order::new);
        PROGRAMS.put("core-subscriptions", Subscriptions::new);
        PROGRAMS.put("core-temporary", Temporary::new);
        PROGRAMS.put("core-selectors", Selectors::new);
        PROGRAMS.put("core-queues", Queues::new);
        PROGRAMS.put("core-full", FullAddresses::new);
        PROGRAMS.put("core-large", LargeMessages::new);
        PROGRAMS.put("core-send-answers", SendAnswers::new);
        PROGRAMS.put("core-errors", Errors::new);
        PROGRAMS.put("core-crossing", Crossing::new);
    }

    private Main() {}

    public static void main(String[] arguments) throws Exception {
        String wanted = arguments.length > 2 ? arguments[2] : "";
        List<Case> cases = new ArrayList<>();
        for (String program : arguments[1].split(",")) {
            PROGRAMS.get(program).get().list((name, body) -> {
                if (name.startsWith(wanted)) {
                    Stage stage = new Stage(arguments[0], program + ": " + name);
                    cases.add(new Case(stage, () -> body.run(stage)));
                }
            });
        }
        Case.runAll(cases);
    }
}
