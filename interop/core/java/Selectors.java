package interop;

import java.util.ArrayList;
import java.util.Enumeration;
import java.util.List;
import java.util.function.BiConsumer;
import javax.jms.DeliveryMode;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageProducer;
import javax.jms.Session;
import org.apache.activemq.artemis.api.core.SimpleString;
import org.apache.activemq.artemis.api.core.client.ClientConsumer;
import org.apache.activemq.artemis.api.core.client.ClientMessage;
import org.apache.activemq.artemis.api.core.client.ClientSession;
import org.apache.activemq.artemis.jms.client.ActiveMQMessage;

/** Which messages a selector takes, with the names of JMS and those of the core API. */
final class Selectors implements Program {
    @Override
    public void list(BiConsumer<String, Body> cases) {
        cases.accept("numbers", stage -> matched(stage, "n = 1", "n > 1", "n BETWEEN 2 AND 3", "n IN (1, 3)", "n <> 2",
                "n * 2 = 4", "-n < -2", "n + 0.5 > 3", "n = 1.0", "n = '1'", "f > 1.4", "big = 5000000000", "n % 2 = 1"));
        cases.accept("strings", stage -> matched(stage, "s = 'a'", "s LIKE 'a%'", "s LIKE '_b'", "s LIKE 'a!_%' ESCAPE '!'",
                "s IN ('a', 'ab')", "s NOT IN ('a')", "s > 'a'", "s = 'it''s'", "s IS NULL", "s IS NOT NULL", "s NOT LIKE 'a%'"));
        cases.accept("two that are missing", stage -> matched(stage, "s = missing"));
        cases.accept("booleans and nothing", stage -> matched(stage, "b", "NOT b", "b = TRUE", "b <> TRUE", "missing = 1",
                "missing IS NULL", "missing = 1 OR n = 1", "NOT (missing = 1)", "TRUE", "1 = 1", "missing <> 1"));
        cases.accept("headers", stage -> matched(stage, "JMSPriority > 5", "JMSDeliveryMode = 'PERSISTENT'",
                "JMSDeliveryMode = 'NON_PERSISTENT'", "JMSType = 'kind'", "JMSCorrelationID = 'cor'", "JMSTimestamp > 0",
                "JMSMessageID IS NOT NULL", "JMSMessageID LIKE 'ID:%'", "JMSExpiration > 0", "JMSXGroupID = 'g'",
                "JMSReplyTo IS NOT NULL"));
        cases.accept("what changes while a message waits", stage -> matched(stage, "JMSXDeliveryCount = 1",
                "JMSRedelivered = FALSE"));
        cases.accept("names of Artemis", stage -> matched(stage, "AMQPriority > 5", "AMQDurable = 'DURABLE'",
                "AMQTimestamp > 0", "AMQSize > 0", "AMQExpiration = 0", "AMQGroupID = 'g'", "AMQUserID LIKE 'ID:%'",
                "AMQAddress = '" + stage.own("") + "'"));
        cases.accept("names of properties within the broker", stage -> matched(stage, "_AMQ_GROUP_ID = 'g'"));
        cases.accept("wrong", Selectors::wrong);
        cases.accept("core filters", Selectors::core);
        cases.accept("others stay", Selectors::othersStay);
        cases.accept("of its own message id", Selectors::byId);
        cases.accept("strange names", stage -> matched(stage, "\"a-b\" = 1", "hyphenated_props:a-b = 1", "a.b = 1", "$d = 1"));
    }

    private static Message made(Session session, int number) throws JMSException {
        Message message = session.createTextMessage("m" + number);
        if (number <= 3) {
            message.setIntProperty("n", number);
        }
        switch (number) {
            case 1:
                message.setStringProperty("s", "a");
                message.setBooleanProperty("b", true);
                message.setFloatProperty("f", 1.5f);
                message.setIntProperty("$d", 1);
                // Names that JMS refuses and other clients send.
                ((ActiveMQMessage) message).getCoreMessage().putIntProperty("a-b", 1).putIntProperty("a.b", 1);
                break;
            case 2:
                message.setStringProperty("s", "ab");
                message.setBooleanProperty("b", false);
                message.setJMSType("kind");
                message.setLongProperty("big", 5_000_000_000L);
                break;
            case 3:
                message.setStringProperty("s", "a_c");
                message.setJMSCorrelationID("cor");
                message.setStringProperty("JMSXGroupID", "g");
                break;
            case 4:
                message.setStringProperty("s", "it's");
                message.setJMSReplyTo(session.createQueue("reply"));
                break;
            default:
                break;
        }
        return message;
    }

    /** Five messages: with priority 4, 9, 4, 4, 4; the last but one not persistent, the last one to expire some day. */
    private static void send(Stage stage) throws JMSException {
        Session session = stage.session(Session.SESSION_TRANSACTED);
        MessageProducer producer = session.createProducer(stage.queue());
        for (int number = 1; number <= 5; number++) {
            producer.send(made(session, number), number == 4 ? DeliveryMode.NON_PERSISTENT : DeliveryMode.PERSISTENT,
                    number == 2 ? 9 : 4, number == 5 ? 600_000 : 0);
        }
        session.commit();
    }

    private static void matched(Stage stage, String... selectors) throws JMSException {
        send(stage);
        Session session = stage.auto();
        for (String selector : selectors) {
            try {
                List<String> seen = new ArrayList<>();
                Enumeration<?> found = session.createBrowser(stage.queue(), selector).getEnumeration();
                while (found.hasMoreElements()) {
                    seen.add(Stage.body((Message) found.nextElement()));
                }
                stage.say("%s: %s", selector, seen);
            } catch (JMSException error) {
                stage.say("%s: %s", selector, stage.describe(error));
            }
        }
    }

    private static void wrong(Stage stage) throws Exception {
        Session session = stage.auto();
        for (String selector : new String[] {"n =", "= 1", "n LIKE 1", "(n = 1", "'a' = ", "n BETWEEN 1", "n IN ()", " ", ""}) {
            stage.attempt("'" + selector + "'", () -> session.createConsumer(stage.queue(), selector).close());
        }
    }

    private static void core(Stage stage) throws Exception {
        send(stage);
        ClientSession session = stage.core();
        for (String filter : new String[] {"AMQPriority = 9", "AMQDurable = 'NON_DURABLE'", "n = 1 OR n = 2", "AMQSize < 0"}) {
            List<Integer> seen = new ArrayList<>();
            try (ClientConsumer consumer = session.createConsumer(new SimpleString(stage.own("")), new SimpleString(filter), true)) {
                for (ClientMessage one = consumer.receiveImmediate(); one != null; one = consumer.receiveImmediate()) {
                    seen.add(one.containsProperty("n") ? one.getIntProperty("n") : 0);
                }
            }
            stage.say("%s: %s", filter, seen);
        }
        stage.attempt("wrong", () -> session.createConsumer(stage.own(""), "n ="));
    }

    private static void othersStay(Stage stage) throws Exception {
        send(stage);
        Session session = stage.auto();
        stage.rest("some", session.createConsumer(stage.queue(), "n >= 2"));
        stage.drain("left", stage.queue());
    }

    private static void byId(Stage stage) throws Exception {
        Session session = stage.auto();
        MessageProducer producer = session.createProducer(stage.queue());
        Message first = session.createTextMessage("first");
        producer.send(first);
        producer.send(session.createTextMessage("second"));
        stage.rest("by its id", session.createConsumer(stage.queue(), "JMSMessageID = '" + first.getJMSMessageID() + "'"));
        stage.drain("left", stage.queue());
    }
}
