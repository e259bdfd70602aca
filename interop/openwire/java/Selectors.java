package interop;

import java.util.ArrayList;
import java.util.Enumeration;
import java.util.List;
import java.util.function.BiConsumer;
import javax.jms.Connection;
import javax.jms.DeliveryMode;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.QueueBrowser;
import javax.jms.Session;
import org.apache.activemq.ActiveMQConnection;
import org.apache.activemq.command.ActiveMQQueue;
import org.apache.activemq.command.ConsumerId;
import org.apache.activemq.command.ConsumerInfo;
import org.apache.activemq.command.SessionId;

/** What selectors choose and which ones are refused. */
final class Selectors implements Program {
    private static final ActiveMQQueue SHARED = new ActiveMQQueue("interop.selectors");

    private static final String[] GOOD = {
        "number = 5", "number <> 5", "number > 4", "number >= 5", "number < 5 AND number > 1", "number = 5.0",
        "number = '5'", "text = 'five'", "text > 'a'", "text LIKE 'f%'", "text LIKE '_ive'", "text NOT LIKE 'f%'",
        "text LIKE '50!%' ESCAPE '!'", "text IN ('five', 'one')", "text NOT IN ('five', 'one')", "text IS NULL",
        "text IS NOT NULL", "missing = 1", "NOT missing = 1", "missing IS NULL", "flag", "NOT flag", "flag = TRUE",
        "flag <> FALSE", "number BETWEEN 2 AND 5", "number NOT BETWEEN 2 AND 5", "number + 1 = 6", "number * 2 > 8",
        "-number = -5", "number / 2 = 2", "real = 2.5", "real > 2", "big = 5000000000", "number = big",
        "JMSPriority > 4", "JMSPriority = 4", "JMSDeliveryMode = 'PERSISTENT'", "JMSDeliveryMode = 'NON_PERSISTENT'",
        "JMSType = 'kind'", "JMSCorrelationID = 'c1'", "JMSTimestamp > 0", "JMSRedelivered = FALSE",
        "JMSXGroupID = 'g'", "number = 1 OR number = 5 AND text = 'five'", "(number = 1 OR number = 5) AND text = 'five'",
        "number = 0x5", "number = 05", "text = 'it''s'", "text = 'FIVE'", "TRUE", "NOT (number > 1 AND missing = 1)",
        "number % 2 = 1", "text = NULL", "number > text", "number <> text", "5 = number", "'five' = text",
        "number IN ('5')", "small = 5", "single = 2.5", "number = 5 -- why not", "/* all */ TRUE",
    };

    private static final String[] BAD = {
        "number =", "= 5", "number = = 5", "text = 'open", "number == 5", "number != 5", "text LIKE 5",
        "number BETWEEN 1", "IN ('a')", "(number = 5", "number = 5)", "5 + 'a'", "number", "'text'", "5", "a b",
        "text IN ()", "text IN (5)", "text LIKE 'a' ESCAPE 'long'", "NOT",
    };

    @Override
    public void list(BiConsumer<String, Body> cases) {
        cases.accept("fill", Selectors::fill);
        for (String selector : GOOD) {
            cases.accept("takes " + selector, stage -> choose(stage, selector));
        }
        for (String selector : BAD) {
            cases.accept("refuses " + selector, stage -> refuse(stage, selector));
        }
        cases.accept("queue consumers share by selector", Selectors::share);
        cases.accept("topic subscriptions", Selectors::topics);
        cases.accept("a selector in the options of a destination", Selectors::options);
    }

    private static void fill(Stage stage) throws Exception {
        Connection connection = stage.connect();
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageProducer producer = session.createProducer(SHARED);
        Message one = session.createTextMessage("one");
        one.setIntProperty("number", 1);
        one.setStringProperty("text", "one");
        one.setBooleanProperty("flag", true);
        one.setDoubleProperty("real", 1.5);
        one.setJMSCorrelationID("c1");
        producer.send(one, DeliveryMode.PERSISTENT, 9, 0);
        Message five = session.createTextMessage("five");
        five.setIntProperty("number", 5);
        five.setByteProperty("small", (byte) 5);
        five.setStringProperty("text", "five");
        five.setBooleanProperty("flag", false);
        five.setDoubleProperty("real", 2.5);
        five.setFloatProperty("single", 2.5f);
        five.setLongProperty("big", 5_000_000_000L);
        five.setJMSType("kind");
        producer.send(five);
        Message words = session.createTextMessage("words");
        words.setStringProperty("number", "5");
        words.setStringProperty("text", "it's");
        words.setStringProperty("JMSXGroupID", "g");
        Message percent = session.createTextMessage("percent");
        percent.setStringProperty("text", "50%");
        percent.setLongProperty("number", 5L);
        percent.setLongProperty("big", 5L);
        producer.send(percent);
        producer.send(session.createTextMessage("bare"));
        producer.send(words, DeliveryMode.PERSISTENT, 0, 0);
        // The last one, as Classic keeps messages that are not persistent behind those that are; sent in the order of
        // their priorities, so that it does not matter whether a queue keeps them apart.
        producer.send(session.createTextMessage("light"), DeliveryMode.NON_PERSISTENT, 0, 0);
        stage.say("sent");
    }

    private static void choose(Stage stage, String selector) throws Exception {
        stage.attempt("browsing", () -> stage.browse("takes", SHARED, selector));
    }

    private static void refuse(Stage stage, String selector) throws Exception {
        ActiveMQConnection connection = stage.connect();
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        stage.attempt("at the client", () -> session.createConsumer(stage.queue(), selector));
        // The client checks selectors itself, so the broker's answer needs a command made by hand.
        ConsumerInfo wanted = new ConsumerInfo(new ConsumerId(new SessionId(connection.getConnectionInfo()
                .getConnectionId(), 1), 77));
        wanted.setDestination(new ActiveMQQueue(stage.own(".hand")));
        wanted.setSelector(selector);
        wanted.setPrefetchSize(10);
        stage.attempt("at the broker", () -> connection.syncSendPacket(wanted));
        stage.attempt("connection goes on", () -> Stage.barrier(connection));
    }

    private static void share(Stage stage) throws Exception {
        Connection connection = stage.connect();
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageConsumer odd = session.createConsumer(stage.queue(), "n = 1 OR n = 3");
        MessageConsumer four = session.createConsumer(stage.queue(), "n = 4");
        MessageProducer producer = session.createProducer(stage.queue());
        for (int number = 1; number <= 5; number++) {
            Message message = session.createTextMessage("m" + number);
            message.setIntProperty("n", number);
            producer.send(message);
        }
        stage.receive("odd", odd, 2);
        stage.receive("four", four, 1);
        stage.nothing("odd has no more", odd);
        connection.close();
        stage.drain("left", stage.queue());
    }

    private static void topics(Stage stage) throws Exception {
        Connection connection = stage.connectAs(stage.own(""));
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageConsumer plain = session.createConsumer(stage.topic(), "n > 2");
        MessageConsumer durable = session.createDurableSubscriber(stage.topic(), "s", "n < 3", false);
        MessageProducer producer = session.createProducer(stage.topic());
        for (int number = 1; number <= 4; number++) {
            Message message = session.createTextMessage("m" + number);
            message.setIntProperty("n", number);
            producer.send(message);
        }
        stage.receive("plain", plain, 2);
        stage.receive("durable", durable, 2);
        stage.nothing("plain has no more", plain);
        stage.nothing("durable has no more", durable);
        durable.close();
        MessageConsumer changed = session.createDurableSubscriber(stage.topic(), "s", "n = 4", false);
        for (int number = 1; number <= 4; number++) {
            Message message = session.createTextMessage("again" + number);
            message.setIntProperty("n", number);
            producer.send(message);
        }
        stage.receive("durable with another selector", changed, 1);
        stage.nothing("no more", changed);
    }

    private static void options(Stage stage) throws Exception {
        ActiveMQConnection connection = stage.connect();
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        ActiveMQQueue queue = new ActiveMQQueue(stage.own("") + "?consumer.selector=n%3D2");
        stage.attempt("consumer", () -> {
            MessageConsumer consumer = session.createConsumer(queue);
            MessageProducer producer = session.createProducer(stage.queue());
            for (int number = 1; number <= 3; number++) {
                Message message = session.createTextMessage("m" + number);
                message.setIntProperty("n", number);
                producer.send(message);
            }
            stage.receive("chosen", consumer, 1);
        });
        QueueBrowser browser = session.createBrowser(stage.queue(), "n > 1");
        List<String> seen = new ArrayList<>();
        for (Enumeration<?> found = browser.getEnumeration(); found.hasMoreElements(); ) {
            seen.add(Stage.show((Message) found.nextElement()));
        }
        stage.say("browsed: %s", seen);
    }
}
