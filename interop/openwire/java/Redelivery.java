package interop;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.function.BiConsumer;
import javax.jms.Connection;
import javax.jms.DeliveryMode;
import javax.jms.Destination;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;
import javax.jms.Topic;
import org.apache.activemq.ActiveMQConnection;
import org.apache.activemq.ActiveMQSession;
import org.apache.activemq.command.ActiveMQMessage;
import org.apache.activemq.command.ActiveMQQueue;

/** What comes back after recover, rollback and every way to leave, and what becomes a dead letter. */
final class Redelivery implements Program {
    private static final ActiveMQQueue DEAD = new ActiveMQQueue("ActiveMQ.DLQ");
    private static final String[] AT_ONCE = {
        "jms.redeliveryPolicy.initialRedeliveryDelay=0", "jms.redeliveryPolicy.redeliveryDelay=0"
    };

    @Override
    public void list(BiConsumer<String, Body> cases) {
        for (Acknowledgement.Mode mode : Acknowledgement.Mode.values()) {
            for (int prefetch : new int[] {0, 1, 10, 1000}) {
                for (String end : new String[] {"again", "close consumer", "close session", "close connection", "cut"}) {
                    boolean recovers = mode != Acknowledgement.Mode.DUPS_OK && mode != Acknowledgement.Mode.AUTO;
                    if (recovers || !end.equals("again")) {
                        cases.accept(mode + " prefetch " + prefetch + " " + end, stage ->
                                partial(stage, mode, prefetch, end));
                    }
                }
            }
        }
        for (int prefetch : new int[] {0, 1, 10}) {
            for (String end : new String[] {"close consumer", "close connection", "cut"}) {
                cases.accept("durable CLIENT prefetch " + prefetch + " " + end, stage -> durable(stage, prefetch, end));
            }
        }
        cases.accept("closed twice", Redelivery::closedTwice);
        cases.accept("recover twice then close", Redelivery::recoverTwiceThenClose);
        cases.accept("roll back twice then close", Redelivery::rollBackTwiceThenClose);
        for (int prefetch : new int[] {1, 10, 1000}) {
            cases.accept("AUTO listener throws twice prefetch " + prefetch, stage -> throwing(stage, 1, prefetch, 2));
            cases.accept("AUTO listener throws always prefetch " + prefetch, stage -> throwing(stage, 1, prefetch, 99));
            cases.accept("DUPS_OK listener throws always prefetch " + prefetch, stage -> throwing(stage, 3, prefetch, 99));
            cases.accept("CLIENT listener throws prefetch " + prefetch, stage -> throwing(stage, 2, prefetch, 99));
            cases.accept("INDIVIDUAL listener throws always prefetch " + prefetch, stage ->
                    throwing(stage, ActiveMQSession.INDIVIDUAL_ACKNOWLEDGE, prefetch, 99));
        }
        for (int prefetch : new int[] {0, 1, 10}) {
            cases.accept("dead letter by rollback prefetch " + prefetch, stage ->
                    byRollback(stage, prefetch, stage.queue()));
            cases.accept("dead letter by recover prefetch " + prefetch, stage -> byRecover(stage, prefetch));
        }
        cases.accept("dead letter individual queue", stage ->
                byRollback(stage, 10, stage.queue(".individual"), "ActiveMQ.DLQ.Queue." + stage.own(".individual")));
        cases.accept("dead letter of a durable topic", stage -> byRollback(stage, 10, stage.topic()));
        cases.accept("dead letter not persistent", stage -> notPersistent(stage, stage.queue(), "ActiveMQ.DLQ"));
        cases.accept("dead letter not persistent but kept", stage ->
                notPersistent(stage, stage.queue(".nonpersistent"), "ActiveMQ.DLQ.Queue." + stage.own(".nonpersistent")));
        cases.accept("no redelivery at all", stage -> limited(stage, 0));
        cases.accept("default policy is seven deliveries", stage -> limited(stage, 6));
        cases.accept("dead letter comes back from the dead-letter queue", Redelivery::dyingTwice);
        cases.accept("delays", Redelivery::delays);
    }

    /** Six messages, four seen, two acknowledged. */
    private static void partial(Stage stage, Acknowledgement.Mode mode, int prefetch, String end) throws Exception {
        stage.send(stage.queue(), 6);
        Cut cut = new Cut(stage.host(), stage.port());
        String url = Stage.url(
                "127.0.0.1", cut.port(), "jms.prefetchPolicy.all=" + prefetch, AT_ONCE[0], AT_ONCE[1]);
        ActiveMQConnection connection = stage.started(stage.own(""), url);
        Session session = mode.open(connection);
        MessageConsumer consumer = session.createConsumer(stage.queue());
        for (int index = 1; index <= 4; index++) {
            Message message = consumer.receive(Stage.LONG_MS);
            stage.say("first: %s", Stage.show(message));
            if (index == 2 && mode == Acknowledgement.Mode.TRANSACTED) {
                session.commit();
            } else if (index == 2) {
                message.acknowledge();
            }
        }
        Stage.barrier(connection);
        Stage.ready(consumer, Math.min(prefetch, 2));
        if (end.equals("again")) {
            if (session.getTransacted()) {
                session.rollback();
            } else {
                session.recover();
            }
            // A rolled back message stays in delivery, so that with prefetch 1 there is no room for the last one.
            boolean full = mode == Acknowledgement.Mode.TRANSACTED && prefetch == 1;
            stage.receive("again", consumer, mode == Acknowledgement.Mode.INDIVIDUAL ? 5 : full ? 3 : 4);
            if (full) {
                stage.nothing("and then", consumer);
            }
            Stage.barrier(connection);
            stage.browse("not acknowledged", stage.queue());
            connection.close();
        } else if (end.equals("close consumer")) {
            consumer.close();
            Stage.barrier(connection);
            // What a transacted session saw stays its own until the transaction ends.
            stage.drain("while the session lives", stage.queue());
            connection.close();
        } else if (end.equals("close session")) {
            session.close();
            Stage.barrier(connection);
            stage.drain("while the connection lives", stage.queue());
            connection.close();
        } else if (end.equals("close connection")) {
            connection.close();
        } else {
            cut.cut();
            stage.gone(stage.own(""));
        }
        stage.drain("left", stage.queue());
        cut.close();
    }

    private static void durable(Stage stage, int prefetch, String end) throws Exception {
        Cut cut = new Cut(stage.host(), stage.port());
        String url = Stage.url("127.0.0.1", cut.port(), "jms.prefetchPolicy.all=" + prefetch);
        ActiveMQConnection connection = stage.started(stage.own(""), url);
        Session session = connection.createSession(false, Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer consumer = session.createDurableSubscriber(stage.topic(), "s");
        stage.send(stage.topic(), 6);
        for (int index = 1; index <= 4; index++) {
            Message message = consumer.receive(Stage.LONG_MS);
            stage.say("first: %s", Stage.show(message));
            if (index == 2) {
                message.acknowledge();
            }
        }
        Stage.barrier(connection);
        Stage.ready(consumer, Math.min(prefetch, 2));
        if (end.equals("close consumer")) {
            consumer.close();
            Stage.barrier(connection);
            MessageConsumer next = session.createDurableSubscriber(stage.topic(), "s");
            stage.receive("then", next, 4);
            connection.close();
        } else if (end.equals("close connection")) {
            connection.close();
        } else {
            cut.cut();
            stage.gone(stage.own(""));
        }
        Connection again = stage.connectAs(stage.own(""), "jms.prefetchPolicy.all=0");
        stage.take("left", again.createSession(false, 1).createDurableSubscriber(stage.topic(), "s"));
        cut.close();
    }

    private static void closedTwice(Stage stage) throws JMSException {
        stage.send(stage.queue(), 4);
        for (int round = 1; round <= 3; round++) {
            Connection connection = stage.connect();
            Session session = connection.createSession(false, Session.CLIENT_ACKNOWLEDGE);
            stage.receive("round " + round, session.createConsumer(stage.queue()), 2);
            connection.close();
        }
        stage.drain("left", stage.queue());
    }

    private static void recoverTwiceThenClose(Stage stage) throws JMSException {
        stage.send(stage.queue(), 4);
        Connection connection = stage.connect(AT_ONCE);
        Session session = connection.createSession(false, Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer consumer = session.createConsumer(stage.queue());
        stage.receive("first", consumer, 2);
        session.recover();
        stage.receive("second", consumer, 2);
        session.recover();
        stage.receive("third", consumer, 2);
        connection.close();
        stage.drain("left", stage.queue());
    }

    private static void rollBackTwiceThenClose(Stage stage) throws JMSException {
        stage.send(stage.queue(), 4);
        Connection connection = stage.connect(AT_ONCE);
        Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
        MessageConsumer consumer = session.createConsumer(stage.queue());
        stage.receive("first", consumer, 2);
        session.rollback();
        stage.receive("second", consumer, 2);
        session.rollback();
        stage.receive("third", consumer, 2);
        connection.close();
        stage.drain("left", stage.queue());
    }

    private static void throwing(Stage stage, int mode, int prefetch, int times) throws Exception {
        stage.send(stage.queue(), 3);
        ActiveMQConnection connection = stage.connect(
                "jms.prefetchPolicy.all=" + prefetch, AT_ONCE[0], AT_ONCE[1], "jms.redeliveryPolicy.maximumRedeliveries=3");
        Session session = connection.createSession(false, mode);
        MessageConsumer consumer = session.createConsumer(stage.queue());
        List<String> seen = Collections.synchronizedList(new ArrayList<>());
        CountDownLatch last = new CountDownLatch(1);
        int[] thrown = {0};
        consumer.setMessageListener(message -> {
            try {
                seen.add(Stage.show(message));
                String text = Stage.body(message);
                if (text.equals("m2") && thrown[0] < times) {
                    thrown[0]++;
                    throw new IllegalStateException("the application does not like " + text);
                }
                if (mode == ActiveMQSession.INDIVIDUAL_ACKNOWLEDGE) {
                    message.acknowledge();
                }
                if (text.equals("m3")) {
                    last.countDown();
                }
            } catch (JMSException error) {
                seen.add(error.toString());
            }
        });
        Stage.await(last);
        if (mode == ActiveMQSession.INDIVIDUAL_ACKNOWLEDGE && times > 3) {
            Thread.sleep(200);
        }
        connection.stop();
        stage.say("listener got: %s", String.join(", ", seen));
        connection.close();
        stage.drain("left", stage.queue());
        dead(stage, "ActiveMQ.DLQ");
    }

    private static void byRollback(Stage stage, int prefetch, Destination destination) throws JMSException {
        byRollback(stage, prefetch, destination, "ActiveMQ.DLQ");
    }

    private static void byRollback(Stage stage, int prefetch, Destination destination, String dead)
            throws JMSException {
        ActiveMQConnection connection = stage.connectAs(stage.own(""),
                "jms.prefetchPolicy.all=" + prefetch, AT_ONCE[0], AT_ONCE[1], "jms.redeliveryPolicy.maximumRedeliveries=2");
        Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
        MessageConsumer consumer = destination instanceof Topic
                ? session.createDurableSubscriber((Topic) destination, "s")
                : session.createConsumer(destination);
        stage.send(destination, 4);
        for (int round = 1; round <= 3; round++) {
            stage.receive("round " + round, consumer, 2);
            session.rollback();
        }
        stage.receive("then", consumer, 1);
        if (prefetch != 1) {
            stage.receive("and then", consumer, 1);
        } else {
            stage.nothing("and then", consumer);
        }
        session.commit();
        connection.close();
        dead(stage, dead);
        if (!(destination instanceof Topic)) {
            stage.drain("left", destination);
        }
    }

    private static void byRecover(Stage stage, int prefetch) throws JMSException {
        stage.send(stage.queue(), 4);
        ActiveMQConnection connection = stage.connect(
                "jms.prefetchPolicy.all=" + prefetch, AT_ONCE[0], AT_ONCE[1], "jms.redeliveryPolicy.maximumRedeliveries=2");
        Session session = connection.createSession(false, Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer consumer = session.createConsumer(stage.queue());
        for (int round = 1; round <= 3; round++) {
            stage.receive("round " + round, consumer, 2);
            session.recover();
        }
        Message third = consumer.receive(Stage.LONG_MS);
        stage.say("then: %s", Stage.show(third));
        third.acknowledge();
        connection.close();
        dead(stage, "ActiveMQ.DLQ");
        stage.drain("left", stage.queue());
    }

    /** Takes the dead letters and says what they carry. */
    static void dead(Stage stage, String queue) throws JMSException {
        for (Message message : stage.drain("dead letters", new ActiveMQQueue(queue))) {
            ActiveMQMessage letter = (ActiveMQMessage) message;
            stage.say("dead %s: from %s, in %s, persistent %s, expires %s, priority %d", Stage.body(message),
                    letter.getOriginalDestination(), message.getJMSDestination(),
                    message.getJMSDeliveryMode() == DeliveryMode.PERSISTENT, message.getJMSExpiration() > 0,
                    message.getJMSPriority());
            stage.say("cause: %s", message.getStringProperty("dlqDeliveryFailureCause"));
            stage.say("original expiration: %s", message.propertyExists("originalExpiration"));
        }
    }

    private static void notPersistent(Stage stage, Destination destination, String dead) throws JMSException {
        ActiveMQConnection connection =
                stage.connect(AT_ONCE[0], AT_ONCE[1], "jms.redeliveryPolicy.maximumRedeliveries=1");
        Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
        MessageProducer producer = session.createProducer(destination);
        producer.setDeliveryMode(DeliveryMode.NON_PERSISTENT);
        producer.send(session.createTextMessage("m1"));
        producer.send(session.createTextMessage("m2"));
        session.commit();
        MessageConsumer consumer = session.createConsumer(destination);
        for (int round = 1; round <= 2; round++) {
            stage.receive("round " + round, consumer, 1);
            session.rollback();
        }
        stage.receive("then", consumer, 1);
        session.commit();
        connection.close();
        dead(stage, dead);
        stage.drain("left", destination);
    }

    private static void limited(Stage stage, int most) throws JMSException {
        stage.send(stage.queue(), 2);
        ActiveMQConnection connection =
                stage.connect(AT_ONCE[0], AT_ONCE[1], "jms.redeliveryPolicy.maximumRedeliveries=" + most);
        Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
        MessageConsumer consumer = session.createConsumer(stage.queue());
        String text = "m1";
        int rounds = 0;
        while (text.equals("m1") && rounds < 20) {
            Message message = consumer.receive(Stage.LONG_MS);
            stage.say("got %s", Stage.show(message));
            text = Stage.body(message);
            rounds++;
            if (text.equals("m1")) {
                session.rollback();
            }
        }
        session.commit();
        connection.close();
        dead(stage, "ActiveMQ.DLQ");
    }

    private static void dyingTwice(Stage stage) throws JMSException {
        stage.send(stage.queue(), 1);
        ActiveMQConnection connection =
                stage.connect(AT_ONCE[0], AT_ONCE[1], "jms.redeliveryPolicy.maximumRedeliveries=0");
        Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
        MessageConsumer consumer = session.createConsumer(stage.queue());
        stage.receive("alive", consumer, 1);
        session.rollback();
        consumer.close();
        MessageConsumer letters = session.createConsumer(DEAD);
        stage.receive("dead", letters, 1);
        session.rollback();
        stage.nothing("dead again", letters);
        connection.close();
        stage.drain("left", DEAD);
    }

    private static void delays(Stage stage) throws JMSException {
        stage.send(stage.queue(), 2);
        ActiveMQConnection connection = stage.connect(
                "jms.redeliveryPolicy.initialRedeliveryDelay=300",
                "jms.redeliveryPolicy.redeliveryDelay=300",
                "jms.redeliveryPolicy.useExponentialBackOff=true",
                "jms.redeliveryPolicy.backOffMultiplier=2");
        Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
        MessageConsumer consumer = session.createConsumer(stage.queue());
        for (int round = 1; round <= 3; round++) {
            long start = System.nanoTime();
            stage.receive("round " + round, consumer, 1);
            long waited = (System.nanoTime() - start) / 1_000_000;
            stage.say("waited long enough: %s", waited >= (round == 1 ? 0 : round == 2 ? 290 : 590));
            session.rollback();
        }
        stage.receive("then", consumer, 2);
        session.commit();
        connection.close();
        stage.drain("left", stage.queue());
    }
}
