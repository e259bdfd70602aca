package interop;

import java.util.function.BiConsumer;
import javax.jms.Connection;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;
import org.apache.activemq.artemis.api.core.RoutingType;
import org.apache.activemq.artemis.api.core.SimpleString;
import org.apache.activemq.artemis.api.core.client.ClientMessage;
import org.apache.activemq.artemis.api.core.client.ClientSession;

/** Transactions of a session: what they hide, what comes back, and what dooms them. */
final class Transactions implements Program {
    @Override
    public void list(BiConsumer<String, Body> cases) {
        cases.accept("sends", Transactions::sends);
        cases.accept("receives", Transactions::receives);
        cases.accept("rolled back again and again", Transactions::counts);
        cases.accept("rolled back with two consumers", Transactions::twoConsumers);
        cases.accept("consumer closed before the commit", stage -> consumerCloses(stage, true));
        cases.accept("consumer closed before the rollback", stage -> consumerCloses(stage, false));
        for (String way : new String[] {"session", "connection", "cut"}) {
            cases.accept("left by " + way, stage -> left(stage, way));
        }
        cases.accept("many messages", Transactions::many);
        cases.accept("its own message", Transactions::own);
        cases.accept("empty", Transactions::empty);
        cases.accept("a duplicate id alone", Transactions::duplicateAlone);
        cases.accept("a duplicate id in a transaction", Transactions::duplicate);
        cases.accept("a duplicate id after a rollback", Transactions::duplicateRolledBack);
        cases.accept("doomed by an address that is missing", Transactions::doomed);
        cases.accept("core, rolled back as if delivered or not", Transactions::lastDelivered);
    }

    private static void sends(Stage stage) throws Exception {
        Session session = stage.session(Session.SESSION_TRANSACTED);
        MessageProducer producer = session.createProducer(stage.queue());
        MessageConsumer reader = stage.auto().createConsumer(stage.queue());
        producer.send(session.createTextMessage("m1"));
        session.rollback();
        producer.send(session.createTextMessage("m2"));
        producer.send(session.createTextMessage("m3"));
        session.createQueue(stage.own(""));
        stage.rest("before", reader);
        session.commit();
        stage.rest("after", reader);
    }

    private static void receives(Stage stage) throws Exception {
        stage.send(stage.queue(), 4);
        Session session = stage.session(Session.SESSION_TRANSACTED);
        MessageConsumer consumer = session.createConsumer(stage.queue());
        stage.receive("one", consumer, 1);
        session.commit();
        stage.receive("two", consumer, 2);
        session.rollback();
        stage.receive("then", consumer, 1);
        session.close();
        stage.drain("left", stage.queue());
    }

    private static void counts(Stage stage) throws Exception {
        stage.send(stage.queue(), 3);
        Session session = stage.session(Session.SESSION_TRANSACTED);
        MessageConsumer consumer = session.createConsumer(stage.queue());
        for (int round = 1; round <= 4; round++) {
            stage.receive("round " + round, consumer, 1 + round % 3);
            session.rollback();
        }
        consumer.close();
        stage.rest("another", session.createConsumer(stage.queue()));
        session.commit();
        stage.drain("left", stage.queue());
    }

    private static void twoConsumers(Stage stage) throws Exception {
        stage.send(stage.queue(".a"), 3);
        stage.send(stage.queue(".b"), 3);
        Session session = stage.session(Session.SESSION_TRANSACTED);
        MessageConsumer first = session.createConsumer(stage.queue(".a"));
        MessageConsumer second = session.createConsumer(stage.queue(".b"));
        stage.receive("a", first, 2);
        stage.receive("b", second, 1);
        session.rollback();
        stage.rest("a", first);
        stage.rest("b", second);
        session.commit();
    }

    private static void consumerCloses(Stage stage, boolean commits) throws Exception {
        stage.send(stage.queue(), 4);
        Session session = stage.session(Session.SESSION_TRANSACTED);
        MessageConsumer consumer = session.createConsumer(stage.queue());
        stage.receive("received", consumer, 2);
        consumer.close();
        if (commits) {
            session.commit();
        } else {
            session.rollback();
        }
        session.close();
        stage.drain("left", stage.queue());
    }

    private static void left(Stage stage, String way) throws Exception {
        stage.send(stage.queue(), 4);
        Cut cut = new Cut(stage.host(), stage.port());
        Connection connection = stage.started(stage.own(""), Stage.url(cut.port()));
        Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
        stage.receive("received", session.createConsumer(stage.queue()), 2);
        session.createProducer(stage.queue(".out")).send(session.createTextMessage("out"));
        session.createQueue(stage.own(""));
        if (way.equals("session")) {
            session.close();
        } else if (way.equals("connection")) {
            connection.close();
        } else {
            cut.cut();
            stage.gone(stage.own(""));
        }
        stage.drain("left", stage.queue());
        stage.drain("out", stage.queue(".out"));
        cut.close();
    }

    private static void many(Stage stage) throws Exception {
        stage.send(stage.queue(), 2_000);
        Session session = stage.session(Session.SESSION_TRANSACTED);
        MessageConsumer consumer = session.createConsumer(stage.queue());
        for (int round = 0; round < 2; round++) {
            int count = 0;
            boolean inOrder = true;
            for (Message message; count < 2_000 && (message = consumer.receive(Scene.LONG_MS)) != null; count++) {
                inOrder &= Stage.body(message).equals("m" + (count + 1));
            }
            stage.say("%d in order: %s", count, inOrder);
            if (round == 0) {
                session.rollback();
            } else {
                session.commit();
            }
        }
        stage.drain("left", stage.queue());
    }

    private static void own(Stage stage) throws Exception {
        Session session = stage.session(Session.SESSION_TRANSACTED);
        MessageConsumer consumer = session.createConsumer(stage.queue());
        session.createProducer(stage.queue()).send(session.createTextMessage("m1"));
        stage.rest("before", consumer);
        session.commit();
        stage.receive("after", consumer, 1);
        session.rollback();
        stage.receive("again", consumer, 1);
        session.commit();
    }

    private static void empty(Stage stage) throws Exception {
        Session session = stage.session(Session.SESSION_TRANSACTED);
        stage.attempt("commit", session::commit);
        stage.attempt("rollback", session::rollback);
        Session auto = stage.auto();
        stage.attempt("commit without a transaction", auto::commit);
    }

    private static Message identified(Session session, String text, String id) throws JMSException {
        Message message = session.createTextMessage(text);
        message.setStringProperty("_AMQ_DUPL_ID", id);
        return message;
    }

    private static void duplicateAlone(Stage stage) throws Exception {
        Session session = stage.auto();
        MessageProducer producer = session.createProducer(stage.queue());
        for (String id : new String[] {"a", "b", "a"}) {
            stage.attempt("send " + id, () -> producer.send(identified(session, "by " + id, id)));
        }
        stage.drain("left", stage.queue());
    }

    private static void duplicate(Stage stage) throws Exception {
        Session session = stage.session(Session.SESSION_TRANSACTED);
        MessageProducer producer = session.createProducer(stage.queue());
        producer.send(identified(session, "m1", "a"));
        session.commit();
        producer.send(identified(session, "m2", "b"));
        producer.send(identified(session, "m3", "a"));
        stage.attempt("commit", session::commit);
        producer.send(identified(session, "m4", "b"));
        stage.attempt("commit without it", session::commit);
        stage.drain("left", stage.queue());
    }

    private static void duplicateRolledBack(Stage stage) throws Exception {
        Session session = stage.session(Session.SESSION_TRANSACTED);
        MessageProducer producer = session.createProducer(stage.queue());
        producer.send(identified(session, "m1", "a"));
        session.rollback();
        producer.send(identified(session, "m2", "a"));
        stage.attempt("commit", session::commit);
        stage.drain("left", stage.queue());
    }

    private static void doomed(Stage stage) throws Exception {
        ClientSession session = stage.core(false, false);
        session.createQueue(stage.own(""), RoutingType.ANYCAST, stage.own(""), true);
        stage.attempt("send", () -> session.createProducer(stage.own("")).send(session.createMessage(true)));
        ClientMessage typed = session.createMessage(true);
        typed.putByteProperty("_AMQ_ROUTING_TYPE", (byte) 1);
        stage.attempt("send to nowhere", () -> session.createProducer(stage.own(".fixed")).send(typed));
        stage.attempt("commit", () -> session.commit());
        stage.attempt("send again", () -> session.createProducer(stage.own("")).send(session.createMessage(true)));
        stage.attempt("commit again", () -> session.commit());
        stage.say("%d left", session.queueQuery(new SimpleString(stage.own("")))
                .getMessageCount());
    }

    private static void lastDelivered(Stage stage) throws Exception {
        stage.send(stage.queue(), 3);
        for (boolean last : new boolean[] {true, false}) {
            ClientSession session = stage.core(false, false);
            var consumer = session.createConsumer(stage.own(""));
            stage.say("got %d", consumer.receive(Scene.LONG_MS).getDeliveryCount());
            session.rollback(last);
            stage.say("then %d", consumer.receive(Scene.LONG_MS).getDeliveryCount());
            session.close();
        }
        stage.drain("left", stage.queue());
    }
}
