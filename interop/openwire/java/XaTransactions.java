package interop;

import java.util.Arrays;
import java.util.function.BiConsumer;
import javax.jms.JMSException;
import javax.jms.MessageConsumer;
import javax.jms.Session;
import javax.jms.XASession;
import javax.transaction.xa.XAResource;
import javax.transaction.xa.Xid;
import org.apache.activemq.ActiveMQConnection;
import org.apache.activemq.ActiveMQXAConnection;
import org.apache.activemq.ActiveMQXAConnectionFactory;

/** Transactions with a coordinator of their own. */
final class XaTransactions implements Program {
    @Override
    public void list(BiConsumer<String, Body> cases) {
        cases.accept("one phase", stage -> sends(stage, "one phase"));
        cases.accept("two phases", stage -> sends(stage, "two phases"));
        cases.accept("rolled back", stage -> sends(stage, "rollback"));
        cases.accept("prepared and rolled back", stage -> sends(stage, "prepared rollback"));
        for (int prefetch : new int[] {0, 1, 10}) {
            cases.accept("receive and commit prefetch " + prefetch, stage -> receives(stage, prefetch, true));
            cases.accept("receive and roll back prefetch " + prefetch, stage -> receives(stage, prefetch, false));
        }
        cases.accept("prepared outlives its connection", XaTransactions::outlives);
        cases.accept("prepared outlives a killed broker", XaTransactions::killed);
        cases.accept("not prepared dies with its connection", XaTransactions::unprepared);
        cases.accept("read only", XaTransactions::readOnly);
        cases.accept("recover", XaTransactions::recovers);
        cases.accept("suspend and resume", XaTransactions::suspends);
        cases.accept("end with failure", XaTransactions::fails);
        cases.accept("two branches of one session in turn", XaTransactions::twoBranches);
        for (String end : new String[] {"ends", "ends and closes", "is lost"}) {
            cases.accept("another joins and " + end, stage -> joined(stage, end));
        }
        cases.accept("who began it closes before another that joined", XaTransactions::beginnerCloses);
        cases.accept("errors", XaTransactions::errors);
        cases.accept("forget", XaTransactions::forgets);
        cases.accept("same resource manager", XaTransactions::same);
        cases.accept("work outside a branch", XaTransactions::outside);
        cases.accept("a prepared message is not seen", XaTransactions::unseen);
        cases.accept("a prepared acknowledgement keeps its message", XaTransactions::keeps);
    }

    static final class Branch implements Xid {
        private final byte[] global;

        Branch(String name) {
            global = name.getBytes(java.nio.charset.StandardCharsets.UTF_8);
        }

        @Override
        public int getFormatId() {
            return 77;
        }

        @Override
        public byte[] getGlobalTransactionId() {
            return global;
        }

        @Override
        public byte[] getBranchQualifier() {
            return new byte[] {1};
        }
    }

    private static ActiveMQXAConnection connect(Stage stage, String... options) throws JMSException {
        ActiveMQXAConnection connection = connectTo(stage.url(options));
        connection.start();
        return connection;
    }

    private static ActiveMQXAConnection connectTo(String url) throws JMSException {
        ActiveMQXAConnectionFactory factory = new ActiveMQXAConnectionFactory(Stage.USER, Stage.PASSWORD, url);
        return (ActiveMQXAConnection) factory.createXAConnection();
    }

    private static void sends(Stage stage, String end) throws Exception {
        ActiveMQXAConnection connection = connect(stage);
        XASession session = connection.createXASession();
        XAResource resource = session.getXAResource();
        Xid xid = new Branch(stage.own(""));
        resource.start(xid, XAResource.TMNOFLAGS);
        session.createProducer(stage.queue()).send(session.createTextMessage("m1"));
        resource.end(xid, XAResource.TMSUCCESS);
        Stage.barrier(stage.connect());
        stage.drain("before", stage.queue());
        if (end.equals("one phase")) {
            resource.commit(xid, true);
        } else if (end.equals("rollback")) {
            resource.rollback(xid);
        } else {
            stage.say("prepare gives %d", resource.prepare(xid));
            stage.drain("prepared", stage.queue());
            if (end.equals("two phases")) {
                resource.commit(xid, false);
            } else {
                resource.rollback(xid);
            }
        }
        stage.drain("after", stage.queue());
        connection.close();
    }

    private static void receives(Stage stage, int prefetch, boolean commits) throws Exception {
        stage.send(stage.queue(), 4);
        ActiveMQXAConnection connection = connect(stage, "jms.prefetchPolicy.all=" + prefetch,
                "jms.redeliveryPolicy.initialRedeliveryDelay=0");
        XASession session = connection.createXASession();
        XAResource resource = session.getXAResource();
        Xid xid = new Branch(stage.own(""));
        MessageConsumer consumer = session.createConsumer(stage.queue());
        resource.start(xid, XAResource.TMNOFLAGS);
        stage.receive("first", consumer, 2);
        resource.end(xid, XAResource.TMSUCCESS);
        stage.say("prepare gives %d", resource.prepare(xid));
        if (commits) {
            resource.commit(xid, false);
        } else {
            resource.rollback(xid);
            Xid next = new Branch(stage.own(".next"));
            resource.start(next, XAResource.TMNOFLAGS);
            stage.receive("again", consumer, 2);
            resource.end(next, XAResource.TMSUCCESS);
            resource.commit(next, true);
        }
        connection.close();
        stage.drain("left", stage.queue());
    }

    /** A message sent and one received in a branch that is prepared. */
    private static Xid prepare(Stage stage, ActiveMQXAConnection connection, String name) throws Exception {
        XASession session = connection.createXASession();
        Xid xid = new Branch(name);
        session.getXAResource().start(xid, XAResource.TMNOFLAGS);
        session.createProducer(stage.queue(".out")).send(session.createTextMessage("sent"));
        stage.receive("received", session.createConsumer(stage.queue(".in")), 1);
        session.getXAResource().end(xid, XAResource.TMSUCCESS);
        stage.say("prepare gives %d", session.getXAResource().prepare(xid));
        return xid;
    }

    private static int found(XAResource resource, Xid xid) throws Exception {
        int count = 0;
        for (Xid one : resource.recover(XAResource.TMSTARTRSCAN)) {
            boolean same = one.getFormatId() == xid.getFormatId()
                    && Arrays.equals(one.getGlobalTransactionId(), xid.getGlobalTransactionId())
                    && Arrays.equals(one.getBranchQualifier(), xid.getBranchQualifier());
            count += same ? 1 : 0;
        }
        return count;
    }

    private static void outlives(Stage stage) throws Exception {
        stage.send(stage.queue(".in"), 2);
        ActiveMQXAConnection connection = connect(stage);
        Xid xid = prepare(stage, connection, stage.own(""));
        connection.close();
        finish(stage, xid);
    }

    private static void finish(Stage stage, Xid xid) throws Exception {
        ActiveMQXAConnection next = connect(stage);
        XAResource resource = next.createXASession().getXAResource();
        stage.say("recovered: %d", found(resource, xid));
        stage.drain("in before", stage.queue(".in"));
        stage.drain("out before", stage.queue(".out"));
        resource.commit(xid, false);
        stage.say("recovered then: %d", found(resource, xid));
        stage.drain("in", stage.queue(".in"));
        stage.drain("out", stage.queue(".out"));
        next.close();
    }

    private static void killed(Stage stage) throws Exception {
        stage.allow(120_000);
        stage.send(stage.queue(".in"), 2);
        ActiveMQXAConnection connection = connect(stage);
        Xid xid = prepare(stage, connection, stage.own(""));
        Stage.harness("restart");
        finish(stage, xid);
    }

    private static void unprepared(Stage stage) throws Exception {
        stage.send(stage.queue(".in"), 2);
        ActiveMQXAConnection connection = connect(stage);
        XASession session = connection.createXASession();
        Xid xid = new Branch(stage.own(""));
        session.getXAResource().start(xid, XAResource.TMNOFLAGS);
        session.createProducer(stage.queue(".out")).send(session.createTextMessage("sent"));
        stage.receive("received", session.createConsumer(stage.queue(".in")), 1);
        session.getXAResource().end(xid, XAResource.TMSUCCESS);
        connection.close();
        ActiveMQXAConnection next = connect(stage);
        XAResource resource = next.createXASession().getXAResource();
        stage.say("recovered: %d", found(resource, xid));
        stage.attempt("commit", () -> resource.commit(xid, true));
        next.close();
        stage.drain("in", stage.queue(".in"));
        stage.drain("out", stage.queue(".out"));
    }

    private static void readOnly(Stage stage) throws Exception {
        ActiveMQXAConnection connection = connect(stage);
        XAResource resource = connection.createXASession().getXAResource();
        Xid xid = new Branch(stage.own(""));
        resource.start(xid, XAResource.TMNOFLAGS);
        resource.end(xid, XAResource.TMSUCCESS);
        stage.say("prepare gives %d", resource.prepare(xid));
        stage.attempt("commit", () -> resource.commit(xid, false));
        connection.close();
    }

    private static void recovers(Stage stage) throws Exception {
        stage.send(stage.queue(".in"), 2);
        ActiveMQXAConnection connection = connect(stage, "jms.prefetchPolicy.all=0");
        XAResource resource = connection.createXASession().getXAResource();
        stage.say("before: %d", resource.recover(XAResource.TMSTARTRSCAN).length);
        Xid one = prepare(stage, connection, stage.own(".1"));
        Xid two = prepare(stage, connection, stage.own(".2"));
        stage.say("found %d %d", found(resource, one), found(resource, two));
        stage.say("all: %d", resource.recover(XAResource.TMSTARTRSCAN | XAResource.TMENDRSCAN).length);
        stage.say("no flags: %d", resource.recover(XAResource.TMNOFLAGS).length);
        stage.say("end of scan: %d", resource.recover(XAResource.TMENDRSCAN).length);
        resource.rollback(one);
        resource.commit(two, false);
        stage.say("after: %d", resource.recover(XAResource.TMSTARTRSCAN).length);
        connection.close();
        stage.drain("in", stage.queue(".in"));
        stage.drain("out", stage.queue(".out"));
    }

    private static void suspends(Stage stage) throws Exception {
        ActiveMQXAConnection connection = connect(stage);
        XASession session = connection.createXASession();
        XAResource resource = session.getXAResource();
        Xid xid = new Branch(stage.own(""));
        resource.start(xid, XAResource.TMNOFLAGS);
        session.createProducer(stage.queue()).send(session.createTextMessage("m1"));
        resource.end(xid, XAResource.TMSUSPEND);
        resource.start(xid, XAResource.TMRESUME);
        session.createProducer(stage.queue()).send(session.createTextMessage("m2"));
        resource.end(xid, XAResource.TMSUCCESS);
        resource.start(xid, XAResource.TMJOIN);
        session.createProducer(stage.queue()).send(session.createTextMessage("m3"));
        resource.end(xid, XAResource.TMSUCCESS);
        resource.commit(xid, true);
        connection.close();
        stage.drain("left", stage.queue());
    }

    private static void fails(Stage stage) throws Exception {
        ActiveMQXAConnection connection = connect(stage);
        XASession session = connection.createXASession();
        XAResource resource = session.getXAResource();
        Xid xid = new Branch(stage.own(""));
        resource.start(xid, XAResource.TMNOFLAGS);
        session.createProducer(stage.queue()).send(session.createTextMessage("m1"));
        stage.attempt("end", () -> resource.end(xid, XAResource.TMFAIL));
        stage.attempt("rollback", () -> resource.rollback(xid));
        connection.close();
        stage.drain("left", stage.queue());
    }

    private static void twoBranches(Stage stage) throws Exception {
        ActiveMQXAConnection connection = connect(stage);
        XASession session = connection.createXASession();
        XAResource resource = session.getXAResource();
        Xid one = new Branch(stage.own(".1"));
        Xid two = new Branch(stage.own(".2"));
        for (Xid xid : new Xid[] {one, two}) {
            resource.start(xid, XAResource.TMNOFLAGS);
            session.createProducer(stage.queue()).send(session.createTextMessage(xid == one ? "one" : "two"));
            resource.end(xid, XAResource.TMSUCCESS);
        }
        stage.say("prepare gives %d and %d", resource.prepare(one), resource.prepare(two));
        resource.commit(two, false);
        resource.rollback(one);
        connection.close();
        stage.drain("left", stage.queue());
    }

    /** A second connection works in the branch and leaves it, while the first one goes on. */
    private static void joined(Stage stage, String end) throws Exception {
        stage.send(stage.queue(".in"), 2);
        ActiveMQXAConnection connection = connect(stage, "jms.prefetchPolicy.all=0");
        XASession session = connection.createXASession();
        XAResource resource = session.getXAResource();
        Xid xid = new Branch(stage.own(""));
        resource.start(xid, XAResource.TMNOFLAGS);
        session.createProducer(stage.queue()).send(session.createTextMessage("one"));
        Cut cut = new Cut(stage.host(), stage.port());
        ActiveMQXAConnection other = connectTo(Stage.url("127.0.0.1", cut.port(), "jms.prefetchPolicy.all=0"));
        other.setClientID(stage.own(""));
        other.start();
        XASession joined = other.createXASession();
        joined.getXAResource().start(xid, XAResource.TMJOIN);
        joined.createProducer(stage.queue()).send(joined.createTextMessage("two"));
        stage.receive("received", joined.createConsumer(stage.queue(".in")), 1);
        if (end.equals("is lost")) {
            Stage.barrier(other);
            cut.cut();
            stage.gone(stage.own(""));
        } else {
            joined.getXAResource().end(xid, XAResource.TMSUCCESS);
            if (end.equals("ends and closes")) {
                other.close();
            }
        }
        stage.attempt("send", () -> session.createProducer(stage.queue()).send(session.createTextMessage("three")));
        stage.attempt("end", () -> resource.end(xid, XAResource.TMSUCCESS));
        stage.attempt("prepare", () -> resource.prepare(xid));
        stage.attempt("commit", () -> resource.commit(xid, false));
        connection.close();
        if (end.equals("ends")) {
            other.close();
        }
        cut.close();
        stage.drain("out", stage.queue());
        stage.drain("in", stage.queue(".in"));
    }

    /** A branch ends with the connection that began it, whoever works there beside it. */
    private static void beginnerCloses(Stage stage) throws Exception {
        ActiveMQXAConnection connection = connect(stage);
        XASession session = connection.createXASession();
        Xid xid = new Branch(stage.own(""));
        session.getXAResource().start(xid, XAResource.TMNOFLAGS);
        session.createProducer(stage.queue()).send(session.createTextMessage("one"));
        session.getXAResource().end(xid, XAResource.TMSUCCESS);
        ActiveMQXAConnection other = connect(stage);
        XASession joined = other.createXASession();
        joined.getXAResource().start(xid, XAResource.TMJOIN);
        joined.createProducer(stage.queue()).send(joined.createTextMessage("two"));
        Stage.barrier(other);
        connection.close();
        stage.attempt("end", () -> joined.getXAResource().end(xid, XAResource.TMSUCCESS));
        stage.attempt("prepare", () -> joined.getXAResource().prepare(xid));
        other.close();
        stage.drain("out", stage.queue());
    }

    private static void errors(Stage stage) throws Exception {
        ActiveMQXAConnection connection = connect(stage);
        XASession session = connection.createXASession();
        XAResource resource = session.getXAResource();
        Xid unknown = new Branch(stage.own(".unknown"));
        stage.attempt("prepare of an unknown branch", () -> resource.prepare(unknown));
        stage.attempt("commit of an unknown branch", () -> resource.commit(unknown, false));
        stage.attempt("one phase of an unknown branch", () -> resource.commit(unknown, true));
        stage.attempt("rollback of an unknown branch", () -> resource.rollback(unknown));
        stage.attempt("forget of an unknown branch", () -> resource.forget(unknown));
        stage.attempt("end of an unknown branch", () -> resource.end(unknown, XAResource.TMSUCCESS));
        Xid xid = new Branch(stage.own(""));
        resource.start(xid, XAResource.TMNOFLAGS);
        session.createProducer(stage.queue()).send(session.createTextMessage("m1"));
        stage.attempt("start in a branch", () -> resource.start(unknown, XAResource.TMNOFLAGS));
        stage.attempt("prepare before end", () -> resource.prepare(xid));
        resource.end(xid, XAResource.TMSUCCESS);
        stage.attempt("commit in two phases, not prepared", () -> resource.commit(xid, false));
        stage.attempt("prepare", () -> resource.prepare(xid));
        stage.attempt("prepare again", () -> resource.prepare(xid));
        stage.attempt("one phase though prepared", () -> resource.commit(xid, true));
        stage.attempt("commit", () -> resource.commit(xid, false));
        connection.close();
        stage.drain("left", stage.queue());
    }

    private static void forgets(Stage stage) throws Exception {
        stage.send(stage.queue(".in"), 1);
        ActiveMQXAConnection connection = connect(stage);
        XAResource resource = connection.createXASession().getXAResource();
        Xid xid = prepare(stage, connection, stage.own(""));
        stage.attempt("forget", () -> resource.forget(xid));
        stage.say("found: %d", found(resource, xid));
        connection.close();
        ActiveMQXAConnection next = connect(stage);
        stage.attempt("rollback", () -> next.createXASession().getXAResource().rollback(xid));
        next.close();
        stage.drain("in", stage.queue(".in"));
        stage.drain("out", stage.queue(".out"));
    }

    private static void same(Stage stage) throws Exception {
        ActiveMQXAConnection one = connect(stage);
        ActiveMQXAConnection two = connect(stage);
        XAResource first = one.createXASession().getXAResource();
        stage.say("same resource manager: %s", first.isSameRM(two.createXASession().getXAResource()));
        one.close();
        two.close();
    }

    private static void outside(Stage stage) throws Exception {
        ActiveMQXAConnection connection = connect(stage);
        XASession session = connection.createXASession();
        stage.attempt("send outside a branch", () -> {
            session.createProducer(stage.queue()).send(session.createTextMessage("m1"));
        });
        stage.drain("left", stage.queue());
        stage.attempt("commit of the session", () -> session.commit());
        connection.close();
    }

    private static void unseen(Stage stage) throws Exception {
        ActiveMQXAConnection connection = connect(stage);
        XASession session = connection.createXASession();
        Xid xid = new Branch(stage.own(""));
        ActiveMQConnection reader = stage.connect();
        MessageConsumer consumer =
                reader.createSession(false, Session.AUTO_ACKNOWLEDGE).createConsumer(stage.queue());
        session.getXAResource().start(xid, XAResource.TMNOFLAGS);
        session.createProducer(stage.queue()).send(session.createTextMessage("m1"));
        session.getXAResource().end(xid, XAResource.TMSUCCESS);
        session.getXAResource().prepare(xid);
        stage.send(stage.queue(), "m2");
        stage.receive("reader", consumer, 1);
        stage.browse("browsed", stage.queue());
        session.getXAResource().commit(xid, false);
        stage.receive("reader", consumer, 1);
        connection.close();
    }

    private static void keeps(Stage stage) throws Exception {
        stage.send(stage.queue(".in"), 3);
        ActiveMQXAConnection connection = connect(stage);
        Xid xid = prepare(stage, connection, stage.own(""));
        stage.browse("browsed", stage.queue(".in"));
        XAResource resource = connection.createXASession().getXAResource();
        resource.rollback(xid);
        connection.close();
        stage.drain("in", stage.queue(".in"));
        stage.drain("out", stage.queue(".out"));
    }
}
