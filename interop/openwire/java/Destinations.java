package interop;

import java.util.function.BiConsumer;
import javax.jms.Connection;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.Session;
import org.apache.activemq.command.ActiveMQDestination;
import org.apache.activemq.command.ActiveMQQueue;
import org.apache.activemq.command.ActiveMQTopic;

/** Composite names, wildcards and options behind names. */
final class Destinations implements Program {
    @Override
    public void list(BiConsumer<String, Body> cases) {
        cases.accept("send to a composite queue", stage -> {
            stage.send(new ActiveMQQueue(stage.own(".a") + "," + stage.own(".b")), "m1", "m2");
            stage.drain("a", stage.queue(".a"));
            stage.drain("b", stage.queue(".b"));
        });
        cases.accept("send to a queue and a topic", Destinations::mixed);
        cases.accept("consume a composite queue", Destinations::consumeComposite);
        cases.accept("JMSDestination of a composite send", Destinations::named);
        cases.accept("composite with a temporary destination", Destinations::temporary);
        cases.accept("wildcards of topics", Destinations::topicWildcards);
        cases.accept("wildcards of queues", Destinations::queueWildcards);
        cases.accept("wildcard sees queues made later", Destinations::later);
        cases.accept("send to a wildcard", stage -> {
            Session session = stage.connect().createSession(false, Session.AUTO_ACKNOWLEDGE);
            MessageConsumer one = session.createConsumer(new ActiveMQTopic(stage.own(".x.one")));
            stage.attempt("send", () -> {
                session.createProducer(new ActiveMQTopic(stage.own(".x.*"))).send(session.createTextMessage("m1"));
            });
            stage.nothing("one", one);
        });
        cases.accept("durable wildcard", Destinations::durableWildcard);
        for (String option : new String[] {
            "consumer.prefetchSize=1", "consumer.dispatchAsync=false", "consumer.noLocal=true",
            "consumer.retroactive=true", "consumer.maximumPendingMessageLimit=2", "consumer.exclusive=true",
            "consumer.priority=5", "consumer.unknown=1", "consumer.priority=high", "unknown=1", "producer.unknown=1",
        }) {
            cases.accept("option " + option, stage -> option(stage, option));
        }
        cases.accept("noLocal of a topic", Destinations::noLocal);
        cases.accept("slash and space in a name", stage -> {
            ActiveMQQueue queue = new ActiveMQQueue(stage.own("") + "/a b:c-ü");
            stage.send(queue, "m1");
            stage.drain("left", queue);
        });
        cases.accept("upper and lower case", stage -> {
            stage.send(stage.queue(".Name"), "m1");
            stage.drain("lower", stage.queue(".name"));
            stage.drain("right", stage.queue(".Name"));
        });
        cases.accept("a queue and a topic of one name", Destinations::bothKinds);
        cases.accept("send to the dead-letter queue", stage -> {
            stage.send(new ActiveMQQueue("ActiveMQ.DLQ"), "m1");
            stage.drain("left", new ActiveMQQueue("ActiveMQ.DLQ"));
        });
        cases.accept("destinations known at the broker", Destinations::deleted);
    }

    private static void mixed(Stage stage) throws JMSException {
        Session session = stage.connect().createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageConsumer topic = session.createConsumer(stage.topic());
        stage.send(new ActiveMQQueue(stage.own("") + ",topic://" + stage.own("")), "m1");
        stage.receive("topic", topic, 1);
        stage.drain("queue", stage.queue());
    }

    private static void consumeComposite(Stage stage) throws JMSException {
        Session session = stage.connect().createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageConsumer both = session.createConsumer(new ActiveMQQueue(stage.own(".a") + "," + stage.own(".b")));
        stage.send(stage.queue(".a"), "a1");
        stage.receive("both", both, 1);
        stage.send(stage.queue(".b"), "b1");
        stage.receive("both", both, 1);
        both.close();
        Session acknowledging = stage.connect().createSession(false, Session.CLIENT_ACKNOWLEDGE);
        both = acknowledging.createConsumer(new ActiveMQQueue(stage.own(".a") + "," + stage.own(".b")));
        stage.send(stage.queue(".a"), "a2");
        stage.receive("both", both, 1);
        stage.send(stage.queue(".b"), "b2");
        Message last = both.receive(Stage.LONG_MS);
        stage.say("both: %s", Stage.show(last));
        last.acknowledge();
        both.close();
        stage.drain("a", stage.queue(".a"));
        stage.drain("b", stage.queue(".b"));
    }

    private static void named(Stage stage) throws JMSException {
        Connection connection = stage.connect();
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        ActiveMQDestination composite = new ActiveMQQueue(stage.own(".a") + "," + stage.own(".b"));
        Message sent = session.createTextMessage("m1");
        session.createProducer(composite).send(sent);
        stage.say("sender sees %s", sent.getJMSDestination());
        for (String suffix : new String[] {".a", ".b"}) {
            Message message = session.createConsumer(stage.queue(suffix)).receive(Stage.LONG_MS);
            stage.say("%s sees %s, id is the sent one: %s", suffix, message.getJMSDestination(),
                    message.getJMSMessageID().equals(sent.getJMSMessageID()));
            stage.say("original %s", ((org.apache.activemq.command.ActiveMQMessage) message).getOriginalDestination());
        }
    }

    private static void temporary(Stage stage) throws JMSException {
        Session session = stage.connect().createSession(false, Session.AUTO_ACKNOWLEDGE);
        ActiveMQDestination replies = (ActiveMQDestination) session.createTemporaryQueue();
        MessageConsumer consumer = session.createConsumer(replies);
        ActiveMQQueue both = new ActiveMQQueue(stage.own("") + "," + replies.getQualifiedName());
        stage.attempt("send", () -> session.createProducer(both).send(session.createTextMessage("m1")));
        stage.receive("temporary", consumer, 1);
        stage.drain("queue", stage.queue());
    }

    private static void topicWildcards(Stage stage) throws JMSException {
        Session session = stage.connect().createSession(false, Session.AUTO_ACKNOWLEDGE);
        String[] patterns = {".*", ".>", ".a.*", ".*.c", ".a.>", ".a.*.d", ".a"};
        MessageConsumer[] consumers = new MessageConsumer[patterns.length];
        for (int index = 0; index < patterns.length; index++) {
            consumers[index] = session.createConsumer(new ActiveMQTopic(stage.own(patterns[index])));
        }
        MessageConsumer end = session.createConsumer(new ActiveMQTopic(stage.own(".>")));
        for (String name : new String[] {"", ".a", ".b", ".a.b", ".a.c", ".b.c", ".a.c.d"}) {
            stage.send(new ActiveMQTopic(stage.own(name)), "to " + name);
        }
        stage.receive("all", end, 7);
        for (int index = 0; index < patterns.length; index++) {
            StringBuilder seen = new StringBuilder();
            for (Message message = consumers[index].receiveNoWait(); message != null;
                    message = consumers[index].receive(100)) {
                seen.append(" [").append(Stage.body(message)).append(']');
            }
            stage.say("%s:%s", patterns[index], seen);
        }
    }

    private static void queueWildcards(Stage stage) throws JMSException {
        stage.send(stage.queue(".a"), "a1");
        stage.send(stage.queue(".b"), "b1");
        stage.send(stage.queue(".b.c"), "bc1");
        Session session = stage.connect().createSession(false, Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer level = session.createConsumer(new ActiveMQQueue(stage.own(".*")));
        String one = Stage.body(level.receive(Stage.LONG_MS));
        Message last = level.receive(Stage.LONG_MS);
        stage.say("one level: %s", new java.util.TreeSet<>(java.util.Arrays.asList(one, Stage.body(last))));
        last.acknowledge();
        stage.nothing("no more", level);
        level.close();
        stage.drain("all levels", new ActiveMQQueue(stage.own(".>")));
        stage.drain("a", stage.queue(".a"));
    }

    private static void later(Stage stage) throws JMSException {
        Session session = stage.connect().createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageConsumer consumer = session.createConsumer(new ActiveMQQueue(stage.own(".>")));
        stage.send(stage.queue(".new.one"), "m1");
        stage.receive("consumer", consumer, 1);
        stage.send(stage.queue(".new.two"), "m2");
        Message message = consumer.receive(Stage.LONG_MS);
        stage.say("from %s", message.getJMSDestination());
    }

    private static void durableWildcard(Stage stage) throws JMSException {
        Connection connection = stage.connectAs(stage.own(""));
        ActiveMQTopic all = new ActiveMQTopic(stage.own(".>"));
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        stage.send(new ActiveMQTopic(stage.own(".a")), "before");
        session.createDurableSubscriber(all, "s");
        connection.close();
        stage.send(new ActiveMQTopic(stage.own(".a")), "a1");
        stage.send(new ActiveMQTopic(stage.own(".b")), "b1");
        stage.send(new ActiveMQTopic(stage.own(".a")), "a2");
        Connection again = stage.connectAs(stage.own(""));
        Session next = again.createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageConsumer consumer = next.createDurableSubscriber(all, "s");
        java.util.Set<String> seen = new java.util.TreeSet<>();
        for (int index = 0; index < 3; index++) {
            seen.add(Stage.body(consumer.receive(Stage.LONG_MS)));
        }
        stage.say("kept: %s", seen);
    }

    private static void option(Stage stage, String option) throws JMSException {
        Session session = stage.connect().createSession(false, Session.AUTO_ACKNOWLEDGE);
        ActiveMQQueue queue = new ActiveMQQueue(stage.own("") + "?" + option);
        boolean consumes = stage.attempt("consumer", () -> session.createConsumer(queue));
        stage.attempt("producer", () -> session.createProducer(queue).send(session.createTextMessage("m1")));
        session.close();
        stage.say("name at the broker is the plain one: %s", consumes);
        stage.drain("left", stage.queue());
    }

    private static void noLocal(Stage stage) throws JMSException {
        Connection connection = stage.connect();
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageConsumer consumer = session.createConsumer(stage.topic(), null, true);
        session.createProducer(stage.topic()).send(session.createTextMessage("mine"));
        stage.send(stage.topic(), "foreign");
        stage.receive("topic", consumer, 1);
        stage.nothing("no more", consumer);
        stage.attempt("noLocal of a queue", () -> session.createConsumer(stage.queue(), null, true));
        session.createProducer(stage.queue()).send(session.createTextMessage("mine"));
    }

    private static void bothKinds(Stage stage) throws JMSException {
        Session session = stage.connect().createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageConsumer topic = session.createConsumer(stage.topic());
        stage.send(stage.queue(), "to the queue");
        stage.send(stage.topic(), "to the topic");
        stage.receive("topic", topic, 1);
        stage.nothing("topic", topic);
        stage.drain("queue", stage.queue());
    }

    private static void deleted(Stage stage) throws Exception {
        org.apache.activemq.ActiveMQConnection connection = stage.connect();
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        stage.send(stage.queue(), "m1");
        MessageConsumer consumer = session.createConsumer(stage.queue(), "a = 1");
        stage.attempt("destroy while consumed", () -> {
            connection.destroyDestination((ActiveMQDestination) stage.queue());
        });
        consumer.close();
        stage.attempt("destroy", () -> connection.destroyDestination((ActiveMQDestination) stage.queue()));
        stage.attempt("destroy what is not there", () -> {
            connection.destroyDestination((ActiveMQDestination) stage.queue(".none"));
        });
        stage.drain("left", stage.queue());
    }
}
