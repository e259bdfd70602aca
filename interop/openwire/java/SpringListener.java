package interop;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.BiConsumer;
import javax.jms.Connection;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.Session;
import org.apache.activemq.command.ActiveMQQueue;

/** What Spring's DefaultMessageListenerContainer does, written by hand: poll with a timeout, then invoke. */
final class SpringListener implements Program {
    private static final long RECEIVE_TIMEOUT_MS = 1_000;

    @Override
    public void list(BiConsumer<String, Body> cases) {
        for (boolean transacted : new boolean[] {false, true}) {
            for (int consumers : new int[] {1, 3}) {
                for (boolean cached : new boolean[] {true, false}) {
                    String name = (transacted ? "transacted" : "auto") + ", " + consumers + " consumers, "
                            + (cached ? "cached" : "a new consumer for each poll");
                    cases.accept(name, stage -> run(stage, transacted, consumers, cached, false));
                }
            }
        }
        cases.accept("transacted, the listener throws", stage -> run(stage, true, 1, true, true));
        cases.accept("auto, the listener throws", stage -> run(stage, false, 1, true, true));
        cases.accept("idle polls, then a message", SpringListener::idle);
        cases.accept("template sends with a connection each", SpringListener::template);
        for (boolean each : new boolean[] {true, false}) {
            String how = "template receives with " + (each ? "a connection each" : "one connection");
            cases.accept(how, stage -> templateReceives(stage, each, Session.AUTO_ACKNOWLEDGE, null));
            cases.accept(how + ", transacted", stage ->
                    templateReceives(stage, each, Session.SESSION_TRANSACTED, null));
            cases.accept(how + ", client", stage -> templateReceives(stage, each, Session.CLIENT_ACKNOWLEDGE, null));
            cases.accept(how + ", selected", stage ->
                    templateReceives(stage, each, Session.AUTO_ACKNOWLEDGE, "JMSPriority = 4"));
        }
    }

    private static void run(Stage stage, boolean transacted, int consumers, boolean cached, boolean throwing)
            throws Exception {
        int count = 20;
        // Without cache a prefetched message goes back at each close.
        Connection connection = stage.connect(
                "jms.redeliveryPolicy.initialRedeliveryDelay=0", "jms.redeliveryPolicy.redeliveryDelay=0",
                "jms.redeliveryPolicy.maximumRedeliveries=2");
        List<String> seen = Collections.synchronizedList(new ArrayList<>());
        CountDownLatch all = new CountDownLatch(count);
        AtomicBoolean running = new AtomicBoolean(true);
        List<Thread> threads = new ArrayList<>();
        for (int index = 0; index < consumers; index++) {
            Thread thread = new Thread(() -> {
                try {
                    poll(stage, connection, transacted, cached, running, seen, all, throwing);
                } catch (JMSException error) {
                    stage.say("polling: %s", Stage.classes(error));
                }
            });
            threads.add(thread);
            thread.start();
        }
        stage.send(stage.queue(), count);
        Stage.await(all);
        running.set(false);
        for (Thread thread : threads) {
            thread.join();
        }
        connection.close();
        if (consumers > 1) {
            Collections.sort(seen);
        }
        stage.say("seen: %s", String.join(", ", seen));
        stage.drain("left", stage.queue());
        stage.drain("dead", new ActiveMQQueue("ActiveMQ.DLQ"));
    }

    private static void poll(
            Stage stage, Connection connection, boolean transacted, boolean cached, AtomicBoolean running,
            List<String> seen, CountDownLatch all, boolean throwing) throws JMSException {
        Session session = null;
        MessageConsumer consumer = null;
        while (running.get()) {
            if (session == null) {
                session = connection.createSession(transacted, Session.AUTO_ACKNOWLEDGE);
                consumer = session.createConsumer(stage.queue());
            }
            Message message = consumer.receive(RECEIVE_TIMEOUT_MS);
            if (message == null) {
                if (transacted) {
                    session.commit();
                }
            } else {
                boolean bad = throwing && Stage.body(message).equals("m3");
                seen.add(Stage.show(message));
                if (transacted && bad) {
                    session.rollback();
                    if (message.getIntProperty("JMSXDeliveryCount") == 3) {
                        all.countDown();
                    }
                } else {
                    if (transacted) {
                        session.commit();
                    }
                    all.countDown();
                }
            }
            if (!cached) {
                consumer.close();
                session.close();
                session = null;
            }
        }
    }

    private static void idle(Stage stage) throws JMSException {
        Session session = stage.connect().createSession(true, Session.SESSION_TRANSACTED);
        MessageConsumer consumer = session.createConsumer(stage.queue());
        for (int round = 0; round < 2; round++) {
            stage.say("poll: %s", Stage.show(consumer.receive(RECEIVE_TIMEOUT_MS)));
            session.commit();
        }
        stage.send(stage.queue(), 1);
        stage.receive("poll", consumer, 1);
        session.commit();
    }

    private static void template(Stage stage) throws JMSException {
        for (int number = 1; number <= 20; number++) {
            Connection connection = stage.connect();
            Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
            session.createProducer(stage.queue()).send(session.createTextMessage("m" + number));
            session.close();
            connection.close();
        }
        stage.drain("left", stage.queue());
    }

    /** JmsTemplate.receive in a loop: a session and a consumer for each message, each with the prefetch of one that stays. */
    private static void templateReceives(Stage stage, boolean each, int mode, String selector) throws JMSException {
        int count = 60;
        stage.send(stage.queue(), count);
        Connection connection = null;
        List<String> seen = new ArrayList<>();
        for (int number = 0; number < count; number++) {
            if (connection == null || each) {
                connection = stage.connect();
            }
            Session session = connection.createSession(mode == Session.SESSION_TRANSACTED, mode);
            MessageConsumer consumer = session.createConsumer(stage.queue(), selector);
            Message message = consumer.receive(Stage.LONG_MS);
            seen.add(Stage.show(message));
            if (mode == Session.SESSION_TRANSACTED) {
                session.commit();
            } else if (mode == Session.CLIENT_ACKNOWLEDGE && message != null) {
                message.acknowledge();
            }
            consumer.close();
            session.close();
            if (each) {
                connection.close();
            }
        }
        stage.say("seen: %s", String.join(", ", seen));
        stage.drain("left", stage.queue());
    }
}
