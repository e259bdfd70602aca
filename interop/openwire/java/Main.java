package interop;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Supplier;

/** Runs one program, or some of its cases: {@code Main <broker url> <program> [<start of a case's name>]}. */
public final class Main {
    private static final Map<String, Supplier<Program>> PROGRAMS = new TreeMap<>();

    static {
        PROGRAMS.put("acknowledgement", Acknowledgement::new);
        PROGRAMS.put("advisories", Advisories::new);
        PROGRAMS.put("bad-input", BadInput::new);
        PROGRAMS.put("browsers", Browsers::new);
        PROGRAMS.put("connections", Connections::new);
        PROGRAMS.put("destinations", Destinations::new);
        PROGRAMS.put("durable-subscribers", DurableSubscribers::new);
        PROGRAMS.put("exclusive", Exclusive::new);
        PROGRAMS.put("failover", Failover::new);
        PROGRAMS.put("flow-control", FlowControl::new);
        PROGRAMS.put("groups", Groups::new);
        PROGRAMS.put("large-messages", LargeMessages::new);
        PROGRAMS.put("local-transactions", LocalTransactions::new);
        PROGRAMS.put("lost-connections", LostConnections::new);
        PROGRAMS.put("messages", Messages::new);
        PROGRAMS.put("prefetch-policy", PrefetchPolicy::new);
        PROGRAMS.put("recording", Recording::new);
        PROGRAMS.put("redelivery", Redelivery::new);
        PROGRAMS.put("selectors", Selectors::new);
        PROGRAMS.put("spring-listener", SpringListener::new);
        PROGRAMS.put("temporary", Temporary::new);
        PROGRAMS.put("tls", Tls::new);
        PROGRAMS.put("topic-policy", TopicPolicy::new);
        PROGRAMS.put("virtual-topics", VirtualTopics::new);
        PROGRAMS.put("xa-transactions", XaTransactions::new);
    }

    private Main() {}

    public static void main(String[] arguments) throws Exception {
        Program program = PROGRAMS.get(arguments[1]).get();
        String wanted = arguments.length > 2 ? arguments[2] : "";
        List<Case> cases = new ArrayList<>();
        program.list((name, body) -> {
            if (name.startsWith(wanted)) {
                Stage stage = new Stage(arguments[0], name);
                cases.add(new Case(stage, () -> body.run(stage)));
            }
        });
        Case.runAll(cases);
    }
}
