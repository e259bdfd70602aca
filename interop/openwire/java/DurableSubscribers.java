package interop;

import java.util.function.BiConsumer;
import javax.jms.Connection;
import javax.jms.DeliveryMode;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;
import org.apache.activemq.ActiveMQConnection;

/** Durable subscriptions and client ids. */
final class DurableSubscribers implements Program {
    @Override
    public void list(BiConsumer<String, Body> cases) {
        cases.accept("offline messages", DurableSubscribers::offline);
        cases.accept("persistent and not persistent ones", DurableSubscribers::notPersistent);
        cases.accept("offline messages outlive a killed broker", DurableSubscribers::killed);
        cases.accept("unsubscribe", DurableSubscribers::unsubscribe);
        cases.accept("unsubscribe while active", DurableSubscribers::unsubscribeActive);
        cases.accept("unsubscribe what is not there", stage -> {
            Session session = stage.connectAs(stage.own("")).createSession(false, 1);
            stage.attempt("unsubscribe", () -> session.unsubscribe("none"));
        });
        cases.accept("twice on one connection", stage -> {
            Connection connection = stage.connectAs(stage.own(""));
            Session session = connection.createSession(false, 1);
            session.createDurableSubscriber(stage.topic(), "s");
            stage.attempt("same session", () -> session.createDurableSubscriber(stage.topic(), "s"));
            stage.attempt("other session", () ->
                    connection.createSession(false, 1).createDurableSubscriber(stage.topic(), "s"));
            stage.attempt("other name", () -> session.createDurableSubscriber(stage.topic(), "t"));
        });
        cases.accept("client id twice", stage -> {
            ActiveMQConnection first = stage.connectAs(stage.own(""));
            stage.attempt("second connection", () -> stage.connectAs(stage.own("")));
            Stage.barrier(first);
            first.close();
            stage.attempt("after the first is closed", () -> stage.connectAs(stage.own("")));
        });
        cases.accept("without client id", stage -> {
            Session session = stage.connect().createSession(false, 1);
            stage.attempt("subscribe", () -> session.createDurableSubscriber(stage.topic(), "s"));
        });
        cases.accept("two names of one client", DurableSubscribers::twoNames);
        cases.accept("same name of two clients", DurableSubscribers::twoClients);
        cases.accept("another topic starts anew", DurableSubscribers::otherTopic);
        cases.accept("another selector keeps or drops", DurableSubscribers::otherSelector);
        cases.accept("noLocal", DurableSubscribers::noLocal);
        cases.accept("on a queue", stage -> {
            Session session = stage.connectAs(stage.own("")).createSession(false, 1);
            stage.attempt("subscribe", () -> session.createDurableSubscriber(null, "s"));
            stage.attempt("temporary topic", () -> session.createDurableSubscriber(session.createTemporaryTopic(), "s"));
        });
        cases.accept("acknowledged in a transaction", DurableSubscribers::transacted);
        cases.accept("individual acknowledgements leave gaps", DurableSubscribers::gaps);
        cases.accept("retroactive", DurableSubscribers::retroactive);
    }

    private static void left(Stage stage, String clientId) throws Exception {
        Connection connection = stage.connectAs(clientId, "jms.prefetchPolicy.all=0");
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        stage.take("left", session.createDurableSubscriber(stage.topic(), "s"));
        connection.close();
    }

    private static void subscribe(Stage stage) throws Exception {
        Connection connection = stage.connectAs(stage.own(""));
        connection.createSession(false, 1).createDurableSubscriber(stage.topic(), "s");
        connection.close();
    }

    private static void offline(Stage stage) throws Exception {
        stage.send(stage.topic(), "before");
        subscribe(stage);
        stage.send(stage.topic(), 3);
        left(stage, stage.own(""));
        stage.send(stage.topic(), 4, 5);
        left(stage, stage.own(""));
    }

    private static void notPersistent(Stage stage) throws Exception {
        subscribe(stage);
        Session session = stage.connect().createSession(false, 1);
        MessageProducer producer = session.createProducer(stage.topic());
        producer.setDeliveryMode(DeliveryMode.NON_PERSISTENT);
        producer.send(session.createTextMessage("m1"));
        producer.setDeliveryMode(DeliveryMode.PERSISTENT);
        producer.send(session.createTextMessage("m2"));
        left(stage, stage.own(""));
    }

    private static void killed(Stage stage) throws Exception {
        stage.allow(120_000);
        subscribe(stage);
        stage.send(stage.topic(), 3);
        Stage.harness("restart");
        stage.send(stage.topic(), 4, 4);
        left(stage, stage.own(""));
    }

    private static void unsubscribe(Stage stage) throws Exception {
        subscribe(stage);
        stage.send(stage.topic(), 2);
        Connection connection = stage.connectAs(stage.own(""));
        Session session = connection.createSession(false, 1);
        session.unsubscribe("s");
        stage.attempt("again", () -> session.unsubscribe("s"));
        connection.close();
        left(stage, stage.own(""));
    }

    private static void unsubscribeActive(Stage stage) throws Exception {
        Connection connection = stage.connectAs(stage.own(""));
        Session session = connection.createSession(false, 1);
        MessageConsumer consumer = session.createDurableSubscriber(stage.topic(), "s");
        stage.attempt("unsubscribe", () -> session.unsubscribe("s"));
        stage.send(stage.topic(), 1);
        stage.receive("goes on", consumer, 1);
    }

    private static void twoNames(Stage stage) throws Exception {
        Connection connection = stage.connectAs(stage.own(""));
        Session session = connection.createSession(false, 1);
        MessageConsumer one = session.createDurableSubscriber(stage.topic(), "one");
        MessageConsumer two = session.createDurableSubscriber(stage.topic(), "two");
        stage.send(stage.topic(), 2);
        stage.receive("one", one, 2);
        stage.receive("two", two, 2);
    }

    private static void twoClients(Stage stage) throws Exception {
        for (String client : new String[] {stage.own(".1"), stage.own(".2")}) {
            Connection connection = stage.connectAs(client);
            connection.createSession(false, 1).createDurableSubscriber(stage.topic(), "s");
            connection.close();
        }
        stage.send(stage.topic(), 2);
        left(stage, stage.own(".1"));
        left(stage, stage.own(".2"));
    }

    private static void otherTopic(Stage stage) throws Exception {
        subscribe(stage);
        stage.send(stage.topic(), 2);
        Connection connection = stage.connectAs(stage.own(""), "jms.prefetchPolicy.all=0");
        Session session = connection.createSession(false, 1);
        org.apache.activemq.command.ActiveMQTopic other =
                new org.apache.activemq.command.ActiveMQTopic(stage.own(".other"));
        MessageConsumer consumer = session.createDurableSubscriber(other, "s");
        stage.send(other, "other");
        stage.send(stage.topic(), "old");
        stage.take("of the other topic", consumer);
        connection.close();
        left(stage, stage.own(""));
    }

    private static void otherSelector(Stage stage) throws Exception {
        subscribe(stage);
        stage.send(stage.topic(), 2);
        Connection connection = stage.connectAs(stage.own(""), "jms.prefetchPolicy.all=0");
        Session session = connection.createSession(false, 1);
        stage.take("with a selector", session.createDurableSubscriber(stage.topic(), "s", "a IS NULL", false));
        connection.close();
        left(stage, stage.own(""));
    }

    private static void noLocal(Stage stage) throws Exception {
        Connection connection = stage.connectAs(stage.own(""));
        Session session = connection.createSession(false, 1);
        MessageConsumer consumer = session.createDurableSubscriber(stage.topic(), "s", null, true);
        session.createProducer(stage.topic()).send(session.createTextMessage("mine"));
        stage.send(stage.topic(), "foreign");
        stage.receive("durable", consumer, 1);
        stage.nothing("no more", consumer);
    }

    private static void transacted(Stage stage) throws Exception {
        subscribe(stage);
        stage.send(stage.topic(), 5);
        Connection connection =
                stage.connectAs(stage.own(""), "jms.redeliveryPolicy.initialRedeliveryDelay=0");
        Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
        MessageConsumer consumer = session.createDurableSubscriber(stage.topic(), "s");
        stage.receive("first", consumer, 2);
        session.commit();
        stage.receive("second", consumer, 2);
        session.rollback();
        stage.receive("again", consumer, 2);
        connection.close();
        left(stage, stage.own(""));
    }

    private static void gaps(Stage stage) throws Exception {
        subscribe(stage);
        stage.send(stage.topic(), 5);
        Connection connection = stage.connectAs(stage.own(""));
        Session session = connection.createSession(false, org.apache.activemq.ActiveMQSession.INDIVIDUAL_ACKNOWLEDGE);
        MessageConsumer consumer = session.createDurableSubscriber(stage.topic(), "s");
        for (int index = 1; index <= 4; index++) {
            javax.jms.Message message = consumer.receive(Stage.LONG_MS);
            if (index % 2 == 0) {
                message.acknowledge();
            }
        }
        connection.close();
        left(stage, stage.own(""));
    }

    private static void retroactive(Stage stage) throws Exception {
        stage.send(stage.topic(), 2);
        Session session = stage.connect().createSession(false, 1);
        MessageConsumer consumer = session.createConsumer(
                new org.apache.activemq.command.ActiveMQTopic(stage.own("") + "?consumer.retroactive=true"));
        stage.nothing("retroactive", consumer);
    }
}
