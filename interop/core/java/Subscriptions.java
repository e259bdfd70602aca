package interop;

import java.util.function.BiConsumer;
import javax.jms.Connection;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;
import javax.jms.Topic;
import org.apache.activemq.artemis.api.jms.ActiveMQJMSClient;

/** Consumers of topics: plain, durable, shared, both; and what they leave behind. */
final class Subscriptions implements Program {
    @Override
    public void list(BiConsumer<String, Body> cases) {
        cases.accept("plain", Subscriptions::plain);
        cases.accept("with a selector", Subscriptions::selector);
        cases.accept("noLocal", stage -> noLocal(stage, false));
        cases.accept("noLocal, durable", stage -> noLocal(stage, true));
        cases.accept("durable", Subscriptions::durable);
        cases.accept("durable, in use", Subscriptions::inUse);
        cases.accept("durable, changed", Subscriptions::changed);
        cases.accept("durable, of other clients", Subscriptions::ofOthers);
        cases.accept("durable, strange names", Subscriptions::strangeNames);
        cases.accept("durable, unacknowledged", Subscriptions::unacknowledged);
        cases.accept("durable without a client id", Subscriptions::withoutClientId);
        cases.accept("shared", Subscriptions::shared);
        cases.accept("shared and durable", Subscriptions::sharedDurable);
        cases.accept("shared, changed", Subscriptions::sharedChanged);
        cases.accept("of a name with wildcards", Subscriptions::wildcards);
        cases.accept("by the name of its queue", Subscriptions::byQueue);
        cases.accept("a queue and a topic of one name", Subscriptions::bothKinds);
    }

    private static Topic topic(Stage stage, String suffix) {
        return ActiveMQJMSClient.createTopic(stage.own(suffix));
    }

    private static void plain(Stage stage) throws Exception {
        stage.send(stage.topic(), "m1");
        MessageConsumer first = stage.auto().createConsumer(stage.topic());
        stage.send(stage.topic(), "m2");
        MessageConsumer second = stage.auto().createConsumer(stage.topic());
        stage.send(stage.topic(), "m3");
        stage.rest("first", first);
        stage.rest("second", second);
        second.close();
        stage.send(stage.topic(), "m4");
        stage.rest("first", first);
        stage.attempt("receive when closed", () -> second.receiveNoWait());
    }

    private static void selector(Stage stage) throws Exception {
        Session session = stage.auto();
        MessageConsumer consumer = session.createConsumer(stage.topic(), "JMSType = 'a'");
        MessageProducer producer = session.createProducer(stage.topic());
        for (String type : new String[] {"a", "b", "a"}) {
            Message message = session.createTextMessage("of " + type);
            message.setJMSType(type);
            producer.send(message);
        }
        stage.rest("got", consumer);
    }

    private static void noLocal(Stage stage, boolean durable) throws Exception {
        Session session = stage.connectAs(stage.own("")).createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageConsumer consumer = durable
                ? session.createDurableSubscriber(stage.topic(), "sub", "n = 1", true)
                : session.createConsumer(stage.topic(), "n = 1", true);
        for (Session one : new Session[] {session, stage.auto()}) {
            MessageProducer producer = one.createProducer(stage.topic());
            for (int number = 1; number <= 2; number++) {
                Message message = one.createTextMessage((one == session ? "own " : "other's ") + number);
                message.setIntProperty("n", number);
                producer.send(message);
            }
        }
        stage.rest("got", consumer);
    }

    private static void durable(Stage stage) throws Exception {
        Connection connection = stage.connectAs(stage.own(""));
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageConsumer consumer = session.createDurableSubscriber(stage.topic(), "sub");
        stage.send(stage.topic(), "m1");
        stage.receive("got", consumer, 1);
        connection.close();
        stage.send(stage.topic(), "m2", "m3");
        Session later = stage.connectAs(stage.own("")).createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageConsumer again = later.createDurableSubscriber(stage.topic(), "sub");
        stage.rest("got later", again);
        again.close();
        stage.attempt("unsubscribe", () -> later.unsubscribe("sub"));
        stage.attempt("unsubscribe again", () -> later.unsubscribe("sub"));
        stage.send(stage.topic(), "m4");
        stage.rest("a new one", later.createDurableSubscriber(stage.topic(), "sub"));
    }

    private static void inUse(Stage stage) throws Exception {
        Connection connection = stage.connectAs(stage.own(""));
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageConsumer consumer = session.createDurableSubscriber(stage.topic(), "sub");
        stage.attempt("subscribe again", () -> session.createDurableSubscriber(stage.topic(), "sub"));
        stage.attempt("subscribe in another session", () -> connection
                .createSession(false, Session.AUTO_ACKNOWLEDGE).createDurableConsumer(stage.topic(), "sub"));
        stage.attempt("share it", () -> session.createSharedDurableConsumer(stage.topic(), "sub"));
        stage.attempt("unsubscribe", () -> session.unsubscribe("sub"));
        stage.send(stage.topic(), "m1");
        stage.rest("got", consumer);
    }

    private static void changed(Stage stage) throws Exception {
        Session session = stage.connectAs(stage.own("")).createSession(false, Session.AUTO_ACKNOWLEDGE);
        session.createDurableSubscriber(stage.topic(), "sub").close();
        stage.send(stage.topic(), "m1");
        MessageConsumer filtered = session.createDurableSubscriber(stage.topic(), "sub", "JMSPriority = 4", false);
        stage.rest("with a selector", filtered);
        filtered.close();
        stage.send(stage.topic(), "m2");
        MessageConsumer same = session.createDurableSubscriber(stage.topic(), "sub", "JMSPriority = 4", false);
        stage.rest("with the same selector", same);
        same.close();
        stage.send(stage.topic(), "m3");
        MessageConsumer other = session.createDurableSubscriber(topic(stage, ".other"), "sub");
        stage.rest("of another topic", other);
        stage.send(topic(stage, ".other"), "m4");
        stage.rest("then", other);
    }

    private static void ofOthers(Stage stage) throws Exception {
        for (String client : new String[] {".a", ".b"}) {
            Connection connection = stage.connectAs(stage.own(client));
            connection.createSession(false, Session.AUTO_ACKNOWLEDGE).createDurableSubscriber(stage.topic(), "sub");
            connection.close();
        }
        stage.send(stage.topic(), "m1");
        for (String client : new String[] {".a", ".b", ".c"}) {
            Session session = stage.connectAs(stage.own(client)).createSession(false, Session.AUTO_ACKNOWLEDGE);
            stage.rest("got", session.createDurableSubscriber(stage.topic(), "sub"));
        }
    }

    private static void strangeNames(Stage stage) throws Exception {
        Session session = stage.connectAs(stage.own(".a.b")).createSession(false, Session.AUTO_ACKNOWLEDGE);
        for (String name : new String[] {"a.b", "a\\b", "a b", "\u00E9"}) {
            session.createDurableSubscriber(stage.topic(), name).close();
            stage.send(stage.topic(), "m1");
            MessageConsumer consumer = session.createDurableSubscriber(stage.topic(), name);
            stage.rest("'" + name + "'", consumer);
            consumer.close();
            stage.attempt("unsubscribe", () -> session.unsubscribe(name));
        }
    }

    private static void unacknowledged(Stage stage) throws Exception {
        Connection connection = stage.connectAs(stage.own(""));
        Session session = connection.createSession(false, Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer consumer = session.createDurableSubscriber(stage.topic(), "sub");
        stage.send(stage.topic(), 3);
        stage.receive("got", consumer, 2);
        connection.close();
        Session later = stage.connectAs(stage.own("")).createSession(false, Session.AUTO_ACKNOWLEDGE);
        stage.rest("later", later.createDurableSubscriber(stage.topic(), "sub"));
    }

    private static void withoutClientId(Stage stage) throws Exception {
        Session session = stage.auto();
        stage.attempt("durable", () -> session.createDurableSubscriber(stage.topic(), "sub"));
        stage.attempt("shared and durable", () -> session.createSharedDurableConsumer(stage.topic(), "sub"));
        stage.attempt("shared", () -> session.createSharedConsumer(stage.topic(), "sub"));
        stage.attempt("unsubscribe", () -> session.unsubscribe("unknown"));
    }

    private static void shared(Stage stage) throws Exception {
        MessageConsumer first = stage.auto("consumerWindowSize=0").createSharedConsumer(stage.topic(), "sub");
        MessageConsumer second = stage.auto("consumerWindowSize=0").createSharedConsumer(stage.topic(), "sub");
        MessageConsumer other = stage.auto().createSharedConsumer(stage.topic(), "another");
        stage.send(stage.topic(), 4);
        stage.receive("first", first, 1);
        stage.receive("second", second, 2);
        stage.rest("first", first);
        stage.rest("another", other);
        first.close();
        second.close();
        stage.send(stage.topic(), "m5");
        stage.rest("a new one", stage.auto().createSharedConsumer(stage.topic(), "sub"));
        stage.rest("another", other);
    }

    private static void sharedDurable(Stage stage) throws Exception {
        Session one = stage.auto("consumerWindowSize=0");
        Session two = stage.auto("consumerWindowSize=0");
        MessageConsumer first = one.createSharedDurableConsumer(stage.topic(), stage.own(".sub"));
        MessageConsumer second = two.createSharedDurableConsumer(stage.topic(), stage.own(".sub"));
        stage.send(stage.topic(), 3);
        stage.receive("first", first, 1);
        stage.receive("second", second, 1);
        stage.attempt("unsubscribe in use", () -> one.unsubscribe(stage.own(".sub")));
        first.close();
        second.close();
        stage.send(stage.topic(), "m4");
        MessageConsumer later = one.createSharedDurableConsumer(stage.topic(), stage.own(".sub"));
        stage.rest("later", later);
        later.close();
        stage.attempt("unsubscribe", () -> one.unsubscribe(stage.own(".sub")));
    }

    private static void sharedChanged(Stage stage) throws Exception {
        Session session = stage.auto();
        session.createSharedConsumer(stage.topic(), "sub", "a = 1");
        stage.attempt("same selector", () -> session.createSharedConsumer(stage.topic(), "sub", "a = 1"));
        stage.attempt("another selector", () -> session.createSharedConsumer(stage.topic(), "sub", "a = 2"));
        stage.attempt("no selector", () -> session.createSharedConsumer(stage.topic(), "sub"));
        stage.attempt("another topic", () -> session.createSharedConsumer(topic(stage, ".other"), "sub", "a = 1"));
        MessageConsumer durable = session.createSharedDurableConsumer(stage.topic(), stage.own(".sub"), "a = 1");
        stage.attempt("durable, another selector",
                () -> session.createSharedDurableConsumer(stage.topic(), stage.own(".sub"), "a = 2"));
        durable.close();
        stage.attempt("durable, another selector, unused",
                () -> session.createSharedDurableConsumer(stage.topic(), stage.own(".sub"), "a = 2").close());
    }

    private static void wildcards(Stage stage) throws Exception {
        Session session = stage.auto();
        MessageConsumer all = session.createConsumer(topic(stage, ".#"));
        MessageConsumer one = session.createConsumer(topic(stage, ".*.x"));
        for (String suffix : new String[] {"", ".a", ".a.x", ".b.x", ".a.b.x"}) {
            stage.send(topic(stage, suffix), "to" + suffix);
        }
        stage.rest("all", all);
        stage.rest("one word", one);
    }

    private static void byQueue(Stage stage) throws Exception {
        Session session = stage.connectAs("client").createSession(false, Session.AUTO_ACKNOWLEDGE);
        session.createDurableSubscriber(stage.topic(), stage.own("").replace('.', '_')).close();
        stage.send(stage.topic(), "m1");
        String queue = "client." + stage.own("").replace('.', '_');
        stage.drain("from the queue", session.createQueue(stage.own("") + "::" + queue));
    }

    private static void bothKinds(Stage stage) throws Exception {
        MessageConsumer topic = stage.auto().createConsumer(stage.topic());
        MessageConsumer queue = stage.auto().createConsumer(stage.queue());
        stage.send(stage.topic(), "to the topic");
        stage.send(stage.queue(), "to the queue");
        stage.rest("topic", topic);
        stage.rest("queue", queue);
    }
}
