import { expect } from 'chai';
import { ask } from '../support/calls';
import { type Configured, startGateway, type TestGateway } from '../support/gateway';
import { setPolicy } from '../support/policy-settings';
import { chatAnswer, messagesAnswer, startUpstream, type TestUpstream } from '../support/upstream';

const withRole = (role: unknown) => ({
  messages: [
    { role: 'user', content: 'Hello' },
    { role, content: [{ type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral' } }] },
  ],
});

describe('Roles of messages', () => {
  let upstream: TestUpstream;
  let gateway: TestGateway;
  let key: string;

  async function start(configure?: (config: Configured) => void): Promise<void> {
    gateway = await startGateway({ upstreams: { acme: { url: upstream.url } }, ...(configure && { configure }) });
    ({ key } = await gateway.newCustomer('10'));
  }

  before(async () => {
    upstream = await startUpstream();
  });
  after(() => upstream?.stop());
  beforeEach(() => upstream.reset());

  describe('with the shipped settings:', () => {
    before(() => start());
    after(() => gateway?.stop());

    it('a Messages call with a system message among its messages is forwarded unchanged', async () => {
      upstream.next(messagesAnswer());
      const body = JSON.stringify(ask(withRole('system')));
      const answer = await gateway.call('/v1/messages?beta=true', { key, body });
      expect(answer.status, answer.text).to.equal(200);
      expect(upstream.calls[0]?.body.toString()).to.equal(body);
    });

    it("an unknown role in a Messages call is refused with the vendor's message", async () => {
      for (const role of ['robot', 7, null, { of: 'mine' }]) {
        const answer = await gateway.call('/v1/messages', { key, body: ask(withRole(role)) });
        expect(answer.status).to.equal(400);
        expect(answer.json.error).to.include({
          code: 'INVALID_FIELD',
          param: 'messages[1].role',
          message: "messages.1.role: Input should be 'user', 'assistant' or 'system'",
        });
      }
      expect(upstream.calls).to.have.length(0);
    });

    it('a Chat call accepts the roles of Chat, and an unknown role is refused with a list of them', async () => {
      upstream.next(chatAnswer());
      const accepted = await gateway.call('/v1/chat/completions', { key, body: ask(withRole('developer')) });
      expect(accepted.status, accepted.text).to.equal(200);
      const refused = await gateway.call('/v1/chat/completions', { key, body: ask(withRole('robot')) });
      expect(refused.json.error.message).to.equal(
        'messages[1].role: expected one of user, assistant, tool, system, developer, function',
      );
    });
  });

  describe('narrowed by the setting `roles`:', () => {
    const narrow = (config: Configured) => setPolicy(config, 'model-request', { roles: ['user', 'assistant'] });
    before(() => start(narrow));
    after(() => gateway?.stop());

    it('a system message in a Messages call is refused with the message that clients recognize', async () => {
      const answer = await gateway.call('/v1/messages', { key, body: ask(withRole('system')) });
      expect(answer.status).to.equal(400);
      expect(answer.json.error).to.include({
        type: 'invalid_request_error',
        code: 'INVALID_FIELD',
        param: 'messages[1].role',
        message: "messages.1.role: Input should be 'user' or 'assistant'",
      });
      expect(upstream.calls).to.have.length(0);
    });

    it('a system message in a Chat call is still accepted', async () => {
      upstream.next(chatAnswer());
      const answer = await gateway.call('/v1/chat/completions', { key, body: ask(withRole('system')) });
      expect(answer.status, answer.text).to.equal(200);
    });
  });
});
