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

    /** A broker that lets so many cases hang will let the others hang as well. */
    private static final int MOST_HANGING = 3;
    private static final int GAVE_UP = 3;

    private Main() {}

    public static void main(String[] arguments) throws Exception {
        Program program = PROGRAMS.get(arguments[1]).get();
        String wanted = arguments.length > 2 ? arguments[2] : "";
        List<Case> cases = new ArrayList<>();
        program.list((name, body) -> cases.add(new Case(name, body)));
        int hanging = 0;
        for (Case one : cases) {
            if (one.name.startsWith(wanted) && one.run(arguments[0])) {
                hanging++;
            }
            if (hanging == MOST_HANGING) {
                System.exit(GAVE_UP);
            }
        }
        // Threads of a client that lost its broker must not keep the process.
        System.exit(0);
    }

    private static final class Case {
        final String name;
        private final Body body;
        private Throwable failure;

        Case(String name, Body body) {
            this.name = name;
            this.body = body;
        }

        /** Says whether it hangs. */
        boolean run(String url) throws InterruptedException {
            System.out.println("case " + name);
            Stage stage = new Stage(url, name);
            Thread thread = new Thread(() -> {
                try {
                    body.run(stage);
                } catch (Throwable thrown) {
                    failure = thrown;
                }
            });
            thread.setDaemon(true);
            thread.start();
            thread.join(stage.limitMs());
            boolean hangs = thread.isAlive();
            if (hangs) {
                stage.say("hangs");
                for (StackTraceElement frame : thread.getStackTrace()) {
                    stage.note("at %s", frame);
                }
                thread.interrupt();
            } else if (failure != null) {
                stage.say("fails with %s", Stage.classes(failure));
                stage.note("%s", failure.getMessage());
                for (StackTraceElement frame : failure.getStackTrace()) {
                    if (frame.getClassName().startsWith("interop.")) {
                        stage.note("at %s", frame);
                    }
                }
            }
            stage.print();
            Thread closing = new Thread(stage::close);
            closing.setDaemon(true);
            closing.start();
            closing.join(20_000);
            return hangs;
        }
    }
}
