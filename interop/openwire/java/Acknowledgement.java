package interop;

import java.util.Collections;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.function.BiConsumer;
import javax.jms.Connection;
import javax.jms.Destination;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.Queue;
import javax.jms.Session;
import javax.jms.Topic;
import org.apache.activemq.ActiveMQSession;

/** Every mode, kind of destination, way to receive and prefetch, with and without optimizeAcknowledge. */
final class Acknowledgement implements Program {
    private static final int SENT = 12;
    private static final int TAKEN = 8;
    private static final int ACKNOWLEDGED = 4;

    enum Mode {
        AUTO(Session.AUTO_ACKNOWLEDGE),
        CLIENT(Session.CLIENT_ACKNOWLEDGE),
        DUPS_OK(Session.DUPS_OK_ACKNOWLEDGE),
        INDIVIDUAL(ActiveMQSession.INDIVIDUAL_ACKNOWLEDGE),
        TRANSACTED(Session.SESSION_TRANSACTED);

        final int number;

        Mode(int number) {
            this.number = number;
        }

        Session open(Connection connection) throws JMSException {
            return connection.createSession(this == TRANSACTED, number);
        }

        /** What the application does after the message with that index, counted from 1. */
        void after(int index, Session session, Message message) throws JMSException {
            if (this == CLIENT && index == ACKNOWLEDGED) {
                message.acknowledge();
            } else if (this == INDIVIDUAL && (index == 2 || index == ACKNOWLEDGED + 1)) {
                message.acknowledge();
            } else if (this == TRANSACTED && index == ACKNOWLEDGED) {
                session.commit();
            }
        }
    }

    @Override
    public void list(BiConsumer<String, Body> cases) {
        for (Mode mode : Mode.values()) {
            for (String kind : new String[] {"queue", "topic", "durable"}) {
                for (String way : new String[] {"receive", "listener"}) {
                    for (int prefetch : new int[] {0, 1, 10, 1000}) {
                        for (boolean optimised : new boolean[] {false, true}) {
                            String name = mode + " " + kind + " " + way + " prefetch " + prefetch
                                    + (optimised ? " optimised" : "");
                            Variant variant = new Variant(mode, kind, way.equals("listener"), prefetch, optimised);
                            cases.accept(name, variant::run);
                        }
                    }
                }
            }
        }
    }

    private static final class Variant {
        private final Mode mode;
        private final String kind;
        private final boolean listens;
        private final int prefetch;
        private final boolean optimised;

        Variant(Mode mode, String kind, boolean listens, int prefetch, boolean optimised) {
            this.mode = mode;
            this.kind = kind;
            this.listens = listens;
            this.prefetch = prefetch;
            this.optimised = optimised;
        }

        void run(Stage stage) throws Exception {
            Destination destination = kind.equals("queue") ? stage.queue() : stage.topic();
            Connection connection = stage.connectAs(
                    kind.equals("durable") ? stage.own("") : null,
                    "jms.prefetchPolicy.all=" + prefetch,
                    "jms.optimizeAcknowledge=" + optimised,
                    // Otherwise acknowledgements depend on how fast the machine is.
                    "jms.optimizeAcknowledgeTimeOut=600000");
            Session session = mode.open(connection);
            MessageConsumer consumer = consumer(session, destination);
            if (listens && prefetch == 0) {
                stage.attempt("listener", () -> consumer.setMessageListener(message -> { }));
            } else if (listens) {
                listen(stage, connection, session, consumer, destination);
            } else {
                receive(stage, session, consumer, destination);
            }
            if (destination instanceof Queue) {
                Stage.barrier(connection);
                stage.browse("not acknowledged", (Queue) destination);
            }
            connection.close();
            if (kind.equals("queue")) {
                stage.drain("left", destination);
            } else if (kind.equals("durable")) {
                Connection again = stage.connectAs(stage.own(""), "jms.prefetchPolicy.all=0");
                Session next = again.createSession(false, Session.AUTO_ACKNOWLEDGE);
                stage.take("left", next.createDurableSubscriber((Topic) destination, "s"));
                again.close();
            }
        }

        private MessageConsumer consumer(Session session, Destination destination) throws JMSException {
            return kind.equals("durable")
                    ? session.createDurableSubscriber((Topic) destination, "s")
                    : session.createConsumer(destination);
        }

        private void receive(Stage stage, Session session, MessageConsumer consumer, Destination destination)
                throws JMSException {
            stage.send(destination, SENT);
            List<String> seen = new ArrayList<>();
            for (int index = 1; index <= TAKEN; index++) {
                Message message = consumer.receive(Stage.LONG_MS);
                seen.add(Stage.show(message));
                mode.after(index, session, message);
            }
            stage.say("received: %s", String.join(", ", seen));
        }

        private void listen(
                Stage stage, Connection connection, Session session, MessageConsumer consumer, Destination destination)
                throws Exception {
            List<String> seen = Collections.synchronizedList(new ArrayList<>());
            CountDownLatch all = new CountDownLatch(SENT);
            consumer.setMessageListener(message -> {
                try {
                    seen.add(Stage.show(message));
                    mode.after(seen.size(), session, message);
                } catch (JMSException error) {
                    seen.add(error.toString());
                }
                all.countDown();
            });
            stage.send(destination, SENT);
            if (mode == Mode.INDIVIDUAL && prefetch == 1 && !kind.equals("topic")) {
                // The acknowledgement of the second message takes back the room that was made for it: the first one,
                // seen but not acknowledged, fills the prefetch.
                Stage.until(() -> seen.size() >= 2);
                all.await(Stage.SHORT_MS, java.util.concurrent.TimeUnit.MILLISECONDS);
            } else {
                Stage.await(all);
            }
            // Returns after the listener has, so that what follows it has been sent.
            connection.stop();
            stage.say("listener got: %s", String.join(", ", seen));
        }
    }
}
