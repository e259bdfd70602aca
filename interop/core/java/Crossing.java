package interop;

import java.util.function.BiConsumer;
import javax.jms.BytesMessage;
import javax.jms.Connection;
import javax.jms.DeliveryMode;
import javax.jms.Destination;
import javax.jms.JMSException;
import javax.jms.MapMessage;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.ObjectMessage;
import javax.jms.Queue;
import javax.jms.Session;
import javax.jms.StreamMessage;
import javax.jms.TextMessage;

/** Clients of CORE, OpenWire and STOMP on one queue or topic. */
final class Crossing implements Program {
    @Override
    public void list(BiConsumer<String, Body> cases) {
        for (boolean toOpenWire : new boolean[] {true, false}) {
            String way = toOpenWire ? "CORE to OpenWire, " : "OpenWire to CORE, ";
            for (String kind : new String[] {"text", "bytes", "map", "stream", "object", "nothing"}) {
                cases.accept(way + kind, stage -> body(stage, toOpenWire, kind));
            }
            cases.accept(way + "properties", stage -> properties(stage, toOpenWire));
            cases.accept(way + "property without a value", stage -> nullProperty(stage, toOpenWire));
            cases.accept(way + "headers", stage -> headers(stage, toOpenWire));
            cases.accept(way + "large", stage -> large(stage, toOpenWire));
            cases.accept(way + "request and reply", stage -> reply(stage, toOpenWire));
            cases.accept(way + "topic", stage -> topic(stage, toOpenWire));
        }
        cases.accept("CORE to STOMP", Crossing::toStomp);
        cases.accept("STOMP to CORE", Crossing::fromStomp);
        cases.accept("STOMP to CORE, bytes", Crossing::bytesFromStomp);
        cases.accept("consumers of all take turns", Crossing::takeTurns);
        cases.accept("given back by one, taken by the other", Crossing::givenBack);
    }

    private static Session openWire(Stage stage) throws JMSException {
        Connection connection = new org.apache.activemq.ActiveMQConnectionFactory(Scene.USER, Scene.PASSWORD,
                "tcp://127.0.0.1:" + stage.port() + "?jms.closeTimeout=5000&jms.watchTopicAdvisories=false")
                .createConnection();
        stage.closed(connection::close);
        connection.start();
        return connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
    }

    private static Session session(Stage stage, boolean openWire) throws JMSException {
        return openWire ? openWire(stage) : stage.auto();
    }

    private interface Writer {
        void send(Session session, MessageProducer producer) throws JMSException;
    }

    private static Message through(Stage stage, boolean toOpenWire, Writer writer) throws JMSException {
        Session sender = session(stage, !toOpenWire);
        Session reader = session(stage, toOpenWire);
        MessageConsumer consumer = reader.createConsumer(reader.createQueue(stage.own("")));
        writer.send(sender, sender.createProducer(sender.createQueue(stage.own(""))));
        return consumer.receive(Scene.LONG_MS);
    }

    private static Message made(Session session, String kind) throws JMSException {
        switch (kind) {
            case "text":
                return session.createTextMessage("\u20AC and \uD83D\uDE00");
            case "bytes":
                BytesMessage bytes = session.createBytesMessage();
                bytes.writeInt(7);
                bytes.writeUTF("\u20AC");
                return bytes;
            case "map":
                MapMessage map = session.createMapMessage();
                map.setInt("i", 1);
                map.setString("s", "\u20AC");
                map.setDouble("d", 1.5);
                map.setBytes("b", new byte[] {1, 2});
                return map;
            case "stream":
                StreamMessage stream = session.createStreamMessage();
                stream.writeInt(1);
                stream.writeString("\u20AC");
                stream.writeBoolean(true);
                return stream;
            case "object":
                return session.createObjectMessage("an object");
            default:
                return session.createMessage();
        }
    }

    private static void body(Stage stage, boolean toOpenWire, String kind) throws Exception {
        Message got = through(stage, toOpenWire, (session, producer) -> producer.send(made(session, kind)));
        if (got instanceof TextMessage) {
            stage.say("text %s", ((TextMessage) got).getText());
        } else if (got instanceof BytesMessage) {
            BytesMessage bytes = (BytesMessage) got;
            stage.say("%d bytes: %d %s", bytes.getBodyLength(), bytes.readInt(), bytes.readUTF());
        } else if (got instanceof MapMessage) {
            MapMessage map = (MapMessage) got;
            stage.say("map: %s %s %s %d", map.getObject("i"), map.getObject("s"), map.getObject("d"), map.getBytes("b").length);
        } else if (got instanceof StreamMessage) {
            StreamMessage stream = (StreamMessage) got;
            stage.say("stream: %s %s %s", stream.readObject(), stream.readObject(), stream.readObject());
        } else if (got instanceof ObjectMessage) {
            stage.say("object: %s", ((ObjectMessage) got).getObject());
        } else {
            stage.say("nothing in it: %s", got != null);
        }
    }

    private static void properties(Stage stage, boolean toOpenWire) throws Exception {
        Message got = through(stage, toOpenWire, (session, producer) -> {
            Message made = session.createMessage();
            made.setBooleanProperty("boolean", true);
            made.setByteProperty("byte", (byte) -1);
            made.setShortProperty("short", (short) -2);
            made.setIntProperty("int", -3);
            made.setLongProperty("long", -4);
            made.setFloatProperty("float", 1.5f);
            made.setDoubleProperty("double", -2.5);
            made.setStringProperty("string", "\u20AC");
            producer.send(made);
        });
        for (String name : new String[] {"boolean", "byte", "short", "int", "long", "float", "double", "string"}) {
            Object value = got.getObjectProperty(name);
            stage.say("%s: %s %s, there: %s", name, value == null ? "" : value.getClass().getSimpleName(), value,
                    got.propertyExists(name));
        }
    }

    private static void nullProperty(Stage stage, boolean toOpenWire) throws Exception {
        Message got = through(stage, toOpenWire, (session, producer) -> {
            Message made = session.createMessage();
            made.setStringProperty("none", null);
            producer.send(made);
        });
        stage.say("%s, there: %s", got.getObjectProperty("none"), got.propertyExists("none"));
    }

    private static void headers(Stage stage, boolean toOpenWire) throws Exception {
        Message[] sent = new Message[1];
        Message got = through(stage, toOpenWire, (session, producer) -> {
            Message made = session.createTextMessage("m");
            made.setJMSCorrelationID("cor");
            made.setJMSType("type");
            made.setStringProperty("JMSXGroupID", "g");
            made.setIntProperty("JMSXGroupSeq", 3);
            producer.send(made, DeliveryMode.NON_PERSISTENT, 7, 600_000);
            sent[0] = made;
        });
        stage.say("correlation %s type %s mode %d priority %d redelivered %s", got.getJMSCorrelationID(), got.getJMSType(),
                got.getJMSDeliveryMode(), got.getJMSPriority(), got.getJMSRedelivered());
        stage.say("group %s %s", got.getStringProperty("JMSXGroupID"), got.getObjectProperty("JMSXGroupSeq"));
        stage.say("to %s", ((Queue) got.getJMSDestination()).getQueueName().replace(stage.own(""), "own"));
        stage.say("same id: %s, same time: %s, same expiry: %s", sent[0].getJMSMessageID().equals(got.getJMSMessageID()),
                sent[0].getJMSTimestamp() == got.getJMSTimestamp(), sent[0].getJMSExpiration() == got.getJMSExpiration());
    }

    private static void large(Stage stage, boolean toOpenWire) throws Exception {
        String text = "\u20AC and more ".repeat(30_000);
        Message got = through(stage, toOpenWire, (session, producer) -> producer.send(session.createTextMessage(text)));
        stage.say("same: %s", text.equals(((TextMessage) got).getText()));
    }

    private static void reply(Stage stage, boolean toOpenWire) throws Exception {
        Session client = session(stage, !toOpenWire);
        Destination own = client.createTemporaryQueue();
        MessageConsumer answers = client.createConsumer(own);
        Session server = session(stage, toOpenWire);
        MessageConsumer questions = server.createConsumer(server.createQueue(stage.own("")));
        Message question = client.createTextMessage("question");
        question.setJMSReplyTo(own);
        client.createProducer(client.createQueue(stage.own(""))).send(question);
        Message asked = questions.receive(Scene.LONG_MS);
        stage.say("reply to a queue: %s", asked.getJMSReplyTo() instanceof Queue);
        server.createProducer(null).send(asked.getJMSReplyTo(), server.createTextMessage("answer"));
        stage.say("%s", Stage.body(answers.receive(Scene.LONG_MS)));
    }

    private static void topic(Stage stage, boolean toOpenWire) throws Exception {
        Session reader = session(stage, toOpenWire);
        MessageConsumer consumer = reader.createConsumer(reader.createTopic(stage.own("")));
        Session sender = session(stage, !toOpenWire);
        sender.createProducer(sender.createTopic(stage.own(""))).send(sender.createTextMessage("news"));
        Message got = consumer.receive(Scene.LONG_MS);
        stage.say("%s to %s", Stage.body(got), got.getJMSDestination().toString().replace(stage.own(""), "own"));
    }

    private static void toStomp(Stage stage) throws Exception {
        try (StompPeer stomp = new StompPeer(stage.host(), stage.port())) {
            stomp.subscribe("/queue/" + stage.own(""));
            Session session = stage.auto();
            Message message = session.createTextMessage("text \u20AC");
            message.setStringProperty("own", "a:b");
            message.setIntProperty("n", 7);
            message.setJMSCorrelationID("cor");
            message.setJMSType("type");
            session.createProducer(stage.queue()).send(message, DeliveryMode.PERSISTENT, 6, 0);
            stomp.sayMessage(stage);
            BytesMessage bytes = session.createBytesMessage();
            bytes.writeBytes(new byte[] {1, 0, 2});
            session.createProducer(stage.queue()).send(bytes);
            stomp.sayMessage(stage);
        }
    }

    private static void fromStomp(Stage stage) throws Exception {
        MessageConsumer consumer = stage.auto().createConsumer(stage.queue());
        try (StompPeer stomp = new StompPeer(stage.host(), stage.port())) {
            stomp.send("/queue/" + stage.own(""), "text \u20AC", "own:value", "n:7", "persistent:true", "priority:6",
                    "correlation-id:cor", "type:kind");
        }
        Message got = consumer.receive(Scene.LONG_MS);
        stage.say("%s", Stage.show(got));
        stage.say("own %s n %s mode %d priority %d correlation %s type %s", got.getObjectProperty("own"),
                got.getObjectProperty("n"), got.getJMSDeliveryMode(), got.getJMSPriority(), got.getJMSCorrelationID(),
                got.getJMSType());
    }

    private static void bytesFromStomp(Stage stage) throws Exception {
        MessageConsumer consumer = stage.auto().createConsumer(stage.queue());
        try (StompPeer stomp = new StompPeer(stage.host(), stage.port())) {
            stomp.send("/queue/" + stage.own(""), "abc", "content-length:3");
        }
        stage.say("%s", Stage.show(consumer.receive(Scene.LONG_MS)));
    }

    private static void takeTurns(Stage stage) throws Exception {
        MessageConsumer core = stage.auto("consumerWindowSize=0").createConsumer(stage.queue());
        Session openWire = openWire(stage);
        MessageConsumer other =
                openWire.createConsumer(openWire.createQueue(stage.own("") + "?consumer.prefetchSize=1"));
        stage.send(stage.queue(), 4);
        int ofOther = 0;
        int ofCore = 0;
        while (ofOther + ofCore < 4) {
            ofCore += core.receive(100) == null ? 0 : 1;
            ofOther += other.receive(100) == null ? 0 : 1;
        }
        stage.say("all four, none twice: %s %s", core.receiveNoWait(), other.receive(100));
    }

    private static void givenBack(Stage stage) throws Exception {
        Session openWire = openWire(stage);
        Session session = stage.session(Session.SESSION_TRANSACTED);
        MessageConsumer core = session.createConsumer(stage.queue());
        openWire.createProducer(openWire.createQueue(stage.own(""))).send(openWire.createTextMessage("m1"));
        stage.receive("CORE", core, 1);
        session.rollback();
        session.close();
        Message got = openWire.createConsumer(openWire.createQueue(stage.own(""))).receive(Scene.LONG_MS);
        stage.say("OpenWire: %s", Stage.show(got));
    }
}
