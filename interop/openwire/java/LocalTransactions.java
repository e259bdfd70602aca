package interop;

import java.util.function.BiConsumer;
import javax.jms.Connection;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;
import javax.jms.Topic;
import org.apache.activemq.ActiveMQConnection;
import org.apache.activemq.ActiveMQSession;

/** Transactions of one session. */
final class LocalTransactions implements Program {
    private static final String AT_ONCE = "jms.redeliveryPolicy.initialRedeliveryDelay=0";

    @Override
    public void list(BiConsumer<String, Body> cases) {
        cases.accept("send and commit", stage -> sends(stage, "commit"));
        cases.accept("send and roll back", stage -> sends(stage, "rollback"));
        cases.accept("send and close session", stage -> sends(stage, "close session"));
        cases.accept("send and close connection", stage -> sends(stage, "close connection"));
        cases.accept("send and lose the connection", LocalTransactions::cut);
        for (int prefetch : new int[] {0, 1, 10, 1000}) {
            cases.accept("send and acknowledge, commit, prefetch " + prefetch, stage -> moves(stage, prefetch, true));
            cases.accept("send and acknowledge, roll back, prefetch " + prefetch, stage -> moves(stage, prefetch, false));
            cases.accept("more than the prefetch in one transaction, prefetch " + prefetch, stage -> many(stage, prefetch));
        }
        cases.accept("topic subscribers see commits only", LocalTransactions::topics);
        cases.accept("order of two transactions is order of commits", LocalTransactions::order);
        cases.accept("two sessions of one connection", LocalTransactions::twoSessions);
        cases.accept("empty transactions", LocalTransactions::empty);
        cases.accept("several destinations", LocalTransactions::several);
        cases.accept("individual acknowledgements in a transaction", LocalTransactions::individual);
        cases.accept("a consumer closed before the commit", LocalTransactions::closedBefore);
        cases.accept("a consumer closed before the rollback", LocalTransactions::closedBeforeRollback);
        cases.accept("commit on a session without transaction", stage -> {
            Session session = stage.connect().createSession(false, Session.AUTO_ACKNOWLEDGE);
            stage.attempt("commit", () -> session.commit());
            stage.attempt("rollback", () -> session.rollback());
        });
        cases.accept("recover in a transaction", stage -> {
            Session session = stage.connect().createSession(true, Session.SESSION_TRANSACTED);
            stage.attempt("recover", () -> session.recover());
        });
        cases.accept("two hundred transactions", LocalTransactions::twoHundred);
    }

    private static void sends(Stage stage, String end) throws JMSException {
        ActiveMQConnection connection = stage.connect();
        Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
        MessageProducer producer = session.createProducer(stage.queue());
        for (int number = 1; number <= 3; number++) {
            producer.send(session.createTextMessage("m" + number));
        }
        Stage.barrier(connection);
        stage.drain("before", stage.queue());
        switch (end) {
            case "commit": session.commit(); break;
            case "rollback": session.rollback(); break;
            case "close session": session.close(); Stage.barrier(connection); break;
            default: connection.close();
        }
        stage.drain("after", stage.queue());
    }

    private static void cut(Stage stage) throws Exception {
        Cut cut = new Cut(stage.host(), stage.port());
        ActiveMQConnection connection = stage.started(stage.own(""), Stage.url("127.0.0.1", cut.port()));
        Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
        session.createProducer(stage.queue()).send(session.createTextMessage("m1"));
        Stage.barrier(connection);
        cut.cut();
        stage.gone(stage.own(""));
        // The client closes its sessions in its own time.
        Stage.until(() -> ((ActiveMQSession) session).isClosed());
        stage.attempt("commit", () -> session.commit());
        stage.drain("after", stage.queue());
        cut.close();
    }

    private static void moves(Stage stage, int prefetch, boolean commits) throws JMSException {
        stage.send(stage.queue(".in"), 4);
        Connection connection = stage.connect("jms.prefetchPolicy.all=" + prefetch, AT_ONCE);
        Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
        MessageConsumer consumer = session.createConsumer(stage.queue(".in"));
        MessageProducer producer = session.createProducer(stage.queue(".out"));
        for (int number = 1; number <= 3; number++) {
            Message message = consumer.receive(Stage.LONG_MS);
            stage.say("got %s", Stage.show(message));
            producer.send(session.createTextMessage("done " + Stage.body(message)));
        }
        if (commits) {
            session.commit();
        } else {
            session.rollback();
            stage.receive("again", consumer, 3);
        }
        connection.close();
        stage.drain("in", stage.queue(".in"));
        stage.drain("out", stage.queue(".out"));
    }

    private static void many(Stage stage, int prefetch) throws JMSException {
        stage.send(stage.queue(), 30);
        Connection connection = stage.connect("jms.prefetchPolicy.all=" + prefetch, AT_ONCE);
        Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
        MessageConsumer consumer = session.createConsumer(stage.queue());
        stage.receive("first", consumer, 25);
        session.rollback();
        stage.receive("second", consumer, 25);
        session.commit();
        stage.receive("third", consumer, 5);
        session.rollback();
        connection.close();
        stage.drain("left", stage.queue());
    }

    private static void topics(Stage stage) throws JMSException {
        Connection connection = stage.connectAs(stage.own(""));
        Session reading = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageConsumer plain = reading.createConsumer(stage.topic());
        MessageConsumer durable = reading.createDurableSubscriber(stage.topic(), "s");
        Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
        MessageProducer producer = session.createProducer(stage.topic());
        producer.send(session.createTextMessage("m1"));
        session.rollback();
        producer.send(session.createTextMessage("m2"));
        producer.send(session.createTextMessage("m3"));
        stage.nothing("plain before", plain);
        session.commit();
        stage.receive("plain", plain, 2);
        stage.receive("durable", durable, 2);
    }

    private static void order(Stage stage) throws JMSException {
        Connection connection = stage.connect();
        Session one = connection.createSession(true, Session.SESSION_TRANSACTED);
        Session two = connection.createSession(true, Session.SESSION_TRANSACTED);
        MessageProducer first = one.createProducer(stage.queue());
        MessageProducer second = two.createProducer(stage.queue());
        first.send(one.createTextMessage("a1"));
        second.send(two.createTextMessage("b1"));
        first.send(one.createTextMessage("a2"));
        second.send(two.createTextMessage("b2"));
        two.commit();
        stage.send(stage.queue(), "plain");
        one.commit();
        stage.drain("left", stage.queue());
    }

    private static void twoSessions(Stage stage) throws JMSException {
        stage.send(stage.queue(), 4);
        Connection connection = stage.connect("jms.prefetchPolicy.all=0", AT_ONCE);
        Session one = connection.createSession(true, Session.SESSION_TRANSACTED);
        Session two = connection.createSession(true, Session.SESSION_TRANSACTED);
        MessageConsumer first = one.createConsumer(stage.queue());
        stage.receive("one", first, 1);
        MessageConsumer second = two.createConsumer(stage.queue());
        stage.receive("two", second, 1);
        one.rollback();
        two.commit();
        stage.receive("one", first, 1);
        one.commit();
        connection.close();
        stage.drain("left", stage.queue());
    }

    private static void empty(Stage stage) throws JMSException {
        Session session = stage.connect().createSession(true, Session.SESSION_TRANSACTED);
        session.commit();
        session.rollback();
        session.commit();
        stage.say("nothing happens");
    }

    private static void several(Stage stage) throws JMSException {
        Connection connection = stage.connect();
        Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
        MessageProducer producer = session.createProducer(null);
        MessageConsumer topic = connection.createSession(false, 1).createConsumer(stage.topic());
        producer.send(stage.queue(".a"), session.createTextMessage("m1"));
        producer.send(stage.topic(), session.createTextMessage("m2"));
        producer.send(stage.queue(".b"), session.createTextMessage("m3"));
        stage.browse("a before", stage.queue(".a"));
        session.commit();
        stage.receive("topic", topic, 1);
        stage.drain("a", stage.queue(".a"));
        stage.drain("b", stage.queue(".b"));
    }

    private static void individual(Stage stage) throws JMSException {
        stage.send(stage.queue(), 6);
        Connection connection = stage.connect("jms.transactedIndividualAck=true", "jms.prefetchPolicy.all=2", AT_ONCE);
        Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
        MessageConsumer consumer = session.createConsumer(stage.queue());
        stage.receive("first", consumer, 3);
        session.commit();
        stage.receive("second", consumer, 2);
        session.rollback();
        stage.receive("third", consumer, 2);
        connection.close();
        stage.drain("left", stage.queue());
    }

    private static void closedBefore(Stage stage) throws JMSException {
        stage.send(stage.queue(), 4);
        ActiveMQConnection connection = stage.connect();
        Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
        MessageConsumer consumer = session.createConsumer(stage.queue());
        stage.receive("first", consumer, 2);
        consumer.close();
        session.commit();
        stage.drain("left", stage.queue());
    }

    private static void closedBeforeRollback(Stage stage) throws JMSException {
        stage.send(stage.queue(), 4);
        ActiveMQConnection connection = stage.connect(AT_ONCE);
        Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
        MessageConsumer consumer = session.createConsumer(stage.queue());
        stage.receive("first", consumer, 2);
        consumer.close();
        session.rollback();
        Stage.barrier(connection);
        stage.drain("left", stage.queue());
    }

    private static void twoHundred(Stage stage) throws JMSException {
        Connection connection = stage.connectAs(stage.own(""));
        Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
        Topic topic = stage.topic();
        MessageConsumer durable = session.createDurableSubscriber(topic, "s");
        MessageProducer producer = session.createProducer(topic);
        int right = 0;
        for (int number = 0; number < 200; number++) {
            producer.send(session.createTextMessage("m" + number));
            session.commit();
            right += Stage.body(durable.receive(Stage.LONG_MS)).equals("m" + number) ? 1 : 0;
            session.commit();
        }
        stage.say("right: %d", right);
    }
}
