package interop;

import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BiConsumer;
import javax.jms.BytesMessage;
import javax.jms.DeliveryMode;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Queue;
import javax.jms.Session;

/** What senders see of an address that has no room for more. */
final class FullAddresses implements Program {
    private static final int MANY = 100;
    private static final int SIZE_BYTES = 10_000;

    @Override
    public void list(BiConsumer<String, Body> cases) {
        cases.accept("BLOCK", stage -> blocks(stage, "producerWindowSize=65536"));
        cases.accept("BLOCK, small window", stage -> blocks(stage, "producerWindowSize=1000"));
        cases.accept("BLOCK in a transaction", FullAddresses::blocksInTransaction);
        cases.accept("BLOCK, two sessions of a connection", FullAddresses::twoSessions);
        cases.accept("FAIL", stage -> fails(stage, "producerWindowSize=65536"));
        cases.accept("FAIL without a window", stage -> fails(stage, "producerWindowSize=-1"));
        cases.accept("FAIL in a transaction", FullAddresses::failsInTransaction);
        cases.accept("DROP", FullAddresses::drops);
    }

    private static Message big(Session session) throws JMSException {
        BytesMessage message = session.createBytesMessage();
        message.writeBytes(new byte[SIZE_BYTES]);
        return message;
    }

    /** Sends many in a thread of its own. */
    private static final class Queuing {
        final AtomicInteger sent = new AtomicInteger();
        final Thread thread;

        Queuing(Stage stage, Session session, Queue queue, int count) {
            thread = new Thread(() -> {
                try {
                    MessageProducer producer = session.createProducer(queue);
                    for (int number = 0; number < count; number++) {
                        producer.send(big(session));
                        sent.incrementAndGet();
                    }
                } catch (JMSException error) {
                    // Its connection may be closed while it waits; else how many it sent tells.
                    stage.note("the sender sees %s", stage.describe(error));
                }
            });
            thread.start();
        }

        /** Waits until it stands still, though it has not sent all. */
        void awaitBlocked(Stage stage) throws Exception {
            int before = -1;
            while (sent.get() != before && thread.isAlive()) {
                before = sent.get();
                thread.join(250);
            }
            stage.say("stands still: %s", thread.isAlive());
            stage.note("%d sent", sent.get());
        }
    }

    /** Until there is no room, by a sender that goes away then. */
    private static void fill(Stage stage, Queue queue) throws Exception {
        var connection = stage.connect();
        Queuing sender = new Queuing(stage, connection.createSession(false, Session.AUTO_ACKNOWLEDGE), queue, MANY);
        sender.awaitBlocked(stage);
        connection.close();
        sender.thread.join(Scene.LONG_MS);
    }

    private static int empty(Stage stage, Queue queue) throws Exception {
        MessageConsumer consumer = stage.auto().createConsumer(queue);
        int count = 0;
        while (consumer.receiveNoWait() != null) {
            count++;
        }
        consumer.close();
        return count;
    }

    private static void blocks(Stage stage, String window) throws Exception {
        Queue queue = stage.queue(".blocking");
        Queuing sender = new Queuing(stage, stage.auto(window), queue, MANY);
        sender.awaitBlocked(stage);
        MessageConsumer consumer = stage.auto().createConsumer(queue);
        int taken = 0;
        while (taken < MANY && consumer.receive(Scene.LONG_MS) != null) {
            taken++;
        }
        sender.thread.join(Scene.LONG_MS);
        stage.say("taken %d, sent %d", taken, sender.sent.get());
    }

    private static void blocksInTransaction(Stage stage) throws Exception {
        Queue queue = stage.queue(".blocking");
        Session session = stage.session(Session.SESSION_TRANSACTED, "producerWindowSize=65536");
        stage.auto().createConsumer(queue).close();
        fill(stage, queue);
        Queuing sender = new Queuing(stage, session, queue, 3);
        sender.awaitBlocked(stage);
        empty(stage, queue);
        sender.thread.join(Scene.LONG_MS);
        session.commit();
        stage.say("sent %d, there: %d", sender.sent.get(), empty(stage, queue));
    }

    private static void twoSessions(Stage stage) throws Exception {
        Queue queue = stage.queue(".blocking");
        var connection = stage.connect("producerWindowSize=65536");
        Queuing sender = new Queuing(stage, connection.createSession(false, Session.AUTO_ACKNOWLEDGE), queue, MANY);
        sender.awaitBlocked(stage);
        Session other = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        stage.attempt("send elsewhere", () -> other.createProducer(stage.queue(".free")).send(big(other)));
        MessageConsumer consumer = other.createConsumer(queue);
        int taken = 0;
        while (taken < MANY && consumer.receive(Scene.LONG_MS) != null) {
            taken++;
        }
        sender.thread.join(Scene.LONG_MS);
        stage.say("taken %d, sent %d", taken, sender.sent.get());
    }

    private static void fails(Stage stage, String window) throws Exception {
        Queue queue = stage.queue(".failing");
        Session session = stage.auto(window);
        MessageProducer producer = session.createProducer(queue);
        int sent = 0;
        try {
            for (; sent < MANY; sent++) {
                producer.send(big(session));
            }
            stage.say("all sent");
        } catch (JMSException error) {
            stage.say("refused: %s", stage.describe(error));
        }
        stage.attempt("again", () -> producer.send(big(session)));
        stage.say("all that were sent are there: %s", empty(stage, queue) == sent);
        stage.attempt("then", () -> producer.send(big(session)));
    }

    private static void failsInTransaction(Stage stage) throws Exception {
        Queue queue = stage.queue(".failing");
        Session session = stage.session(Session.SESSION_TRANSACTED, "producerWindowSize=-1");
        MessageProducer producer = session.createProducer(queue);
        stage.attempt("send", () -> {
            for (int sent = 0; sent < MANY; sent++) {
                producer.send(big(session));
            }
        });
        stage.attempt("commit", session::commit);
        stage.say("there: %d", empty(stage, queue));
        producer.send(big(session));
        stage.attempt("commit of one", session::commit);
    }

    private static void drops(Stage stage) throws Exception {
        Queue queue = stage.queue(".dropping");
        for (int mode : new int[] {DeliveryMode.PERSISTENT, DeliveryMode.NON_PERSISTENT}) {
            Session session = stage.auto();
            MessageProducer producer = session.createProducer(queue);
            producer.setDeliveryMode(mode);
            stage.attempt("send", () -> {
                for (int sent = 0; sent < MANY; sent++) {
                    producer.send(big(session));
                }
            });
            int left = empty(stage, queue);
            stage.say("some are lost: %s", left > 0 && left < MANY);
        }
    }
}
