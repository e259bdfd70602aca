package interop;

import java.util.function.BiConsumer;
import javax.jms.Connection;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;
import org.apache.activemq.ActiveMQConnection;

/** Message groups. */
final class Groups implements Program {
    @Override
    public void list(BiConsumer<String, Body> cases) {
        cases.accept("sticky", Groups::sticky);
        cases.accept("sequence -1 closes", Groups::closes);
        cases.accept("sequence 1 reassigns", Groups::reassigns);
        for (String death : new String[] {"close consumer", "close session", "close connection", "cut"}) {
            cases.accept("owner dies by " + death, stage -> dies(stage, death));
        }
        cases.accept("least loaded gets the next group", Groups::leastLoaded);
        cases.accept("full owner holds only its group back", Groups::full);
        cases.accept("beside messages without group", Groups::mixed);
        cases.accept("order within a group after rollback", Groups::rollback);
        cases.accept("owner with a selector that refuses", Groups::selector);
        cases.accept("properties", Groups::properties);
    }

    private static String show(Message message) throws JMSException {
        if (message == null) {
            return "nothing";
        }
        String first = message.propertyExists("JMSXGroupFirstForConsumer")
                ? " first=" + message.getBooleanProperty("JMSXGroupFirstForConsumer") : "";
        String group = message.propertyExists("JMSXGroupID")
                ? " " + message.getStringProperty("JMSXGroupID") + ":" + message.getIntProperty("JMSXGroupSeq") : "";
        return Stage.show(message) + group + first;
    }

    private static void receive(Stage stage, String label, MessageConsumer consumer, int count) throws JMSException {
        StringBuilder seen = new StringBuilder();
        for (int index = 0; index < count; index++) {
            Message message = consumer.receive(Stage.LONG_MS);
            seen.append(index == 0 ? "" : ", ").append(show(message));
            if (message == null) {
                break;
            }
        }
        stage.say("%s: %s", label, seen);
    }

    /** {@code text=group} or {@code text=group:sequence} each. */
    private static void send(Stage stage, String... messages) throws JMSException {
        Connection connection = stage.connect();
        Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
        MessageProducer producer = session.createProducer(stage.queue());
        for (String one : messages) {
            String[] parts = one.split("[=:]");
            Message message = session.createTextMessage(parts[0]);
            if (parts.length > 1) {
                message.setStringProperty("JMSXGroupID", parts[1]);
            }
            if (parts.length > 2) {
                message.setIntProperty("JMSXGroupSeq", Integer.parseInt(parts[2]));
            }
            producer.send(message);
        }
        session.commit();
        connection.close();
    }

    private static MessageConsumer consumer(Stage stage, String... options) throws JMSException {
        return stage.connect(options).createSession(false, Session.AUTO_ACKNOWLEDGE).createConsumer(stage.queue());
    }

    private static void sticky(Stage stage) throws JMSException {
        MessageConsumer one = consumer(stage);
        MessageConsumer two = consumer(stage);
        send(stage, "a1=a", "b1=b", "a2=a", "b2=b", "a3=a", "b3=b");
        receive(stage, "one", one, 3);
        receive(stage, "two", two, 3);
        send(stage, "b4=b", "b5=b", "a4=a");
        receive(stage, "two", two, 2);
        receive(stage, "one", one, 1);
    }

    private static void closes(Stage stage) throws JMSException {
        MessageConsumer one = consumer(stage);
        MessageConsumer two = consumer(stage);
        send(stage, "a1=a", "a2=a:-1");
        receive(stage, "one", one, 2);
        send(stage, "b1=b", "a3=a", "a4=a");
        receive(stage, "two", two, 1);
        receive(stage, "one", one, 2);
        send(stage, "c1=c", "a5=a:-1", "b2=b:-1", "b3=b", "a6=a");
        stage.say("then");
        receive(stage, "one", one, 1);
        receive(stage, "two", two, 1);
    }

    private static void reassigns(Stage stage) throws JMSException {
        MessageConsumer one = consumer(stage);
        MessageConsumer two = consumer(stage);
        send(stage, "a1=a:1", "a2=a:2", "a3=a:1", "a4=a:2");
        receive(stage, "one", one, 2);
        receive(stage, "two", two, 2);
    }

    private static void dies(Stage stage, String death) throws Exception {
        Cut cut = new Cut(stage.host(), stage.port());
        ActiveMQConnection connection = stage.started(stage.own(""), Stage.url("127.0.0.1", cut.port()));
        Session session = connection.createSession(false, Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer owner = session.createConsumer(stage.queue());
        send(stage, "a1=a", "a2=a", "a3=a");
        receive(stage, "owner", owner, 1);
        MessageConsumer next = consumer(stage);
        send(stage, "a4=a");
        Stage.barrier(connection);
        Stage.ready(owner, 3);
        if (death.equals("close consumer")) {
            owner.close();
        } else if (death.equals("close session")) {
            session.close();
        } else if (death.equals("close connection")) {
            connection.close();
        } else {
            cut.cut();
            stage.gone(stage.own(""));
        }
        receive(stage, "next", next, 4);
        cut.close();
    }

    private static void leastLoaded(Stage stage) throws JMSException {
        MessageConsumer one = consumer(stage);
        MessageConsumer two = consumer(stage);
        MessageConsumer three = consumer(stage);
        send(stage, "a=a", "b=b", "c=c", "d=d", "e=e", "f=f");
        receive(stage, "one", one, 2);
        receive(stage, "two", two, 2);
        receive(stage, "three", three, 2);
    }

    private static void full(Stage stage) throws JMSException {
        Session session = stage.connect("jms.prefetchPolicy.all=1").createSession(false, Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer one = session.createConsumer(stage.queue());
        send(stage, "a1=a");
        receive(stage, "one", one, 1);
        MessageConsumer two = consumer(stage);
        send(stage, "a2=a", "a3=a", "a4=a", "b1=b", "plain");
        receive(stage, "two", two, 2);
        stage.nothing("two", two);
    }

    private static void mixed(Stage stage) throws JMSException {
        MessageConsumer one = consumer(stage);
        MessageConsumer two = consumer(stage);
        send(stage, "a1=a", "p1", "p2", "a2=a");
        receive(stage, "one", one, 2);
        receive(stage, "two", two, 2);
    }

    private static void rollback(Stage stage) throws JMSException {
        Session session = stage.connect("jms.redeliveryPolicy.initialRedeliveryDelay=0")
                .createSession(true, Session.SESSION_TRANSACTED);
        MessageConsumer one = session.createConsumer(stage.queue());
        MessageConsumer two = consumer(stage);
        send(stage, "a1=a", "a2=a", "a3=a");
        receive(stage, "one", one, 2);
        session.rollback();
        receive(stage, "one again", one, 3);
        session.commit();
        stage.nothing("two", two);
    }

    private static void selector(Stage stage) throws JMSException {
        Session session = stage.connect().createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageConsumer one = session.createConsumer(stage.queue(), "JMSXGroupSeq <> 5");
        MessageConsumer two = consumer(stage);
        send(stage, "a1=a:2", "a2=a:5", "a3=a:6");
        receive(stage, "one", one, 2);
        stage.nothing("two", two);
    }

    private static void properties(Stage stage) throws JMSException {
        MessageConsumer one = consumer(stage);
        send(stage, "a1=a", "a2=a:7", "plain");
        for (int index = 0; index < 3; index++) {
            Message message = one.receive(Stage.LONG_MS);
            stage.say("%s: id %s, exists seq %s, seq %s", Stage.body(message),
                    message.getStringProperty("JMSXGroupID"), message.propertyExists("JMSXGroupSeq"),
                    message.getObjectProperty("JMSXGroupSeq"));
        }
    }
}
