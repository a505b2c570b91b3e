import { expect } from 'chai';
import { useGateway } from '../support/story';

describe('The connectivity check of agents', () => {
  const gateway = useGateway(() => ({ upstreams: { acme: { url: 'http://127.0.0.1:1' } } }));

  for (const method of ['HEAD', 'GET']) {
    it(`gets 200 for ${method} /api/hello without credentials or with those of another service`, async () => {
      for (const headers of [{}, { 'x-api-key': 'sk-of-another-service' }]) {
        const answer = await gateway.call('/api/hello', { method, headers });
        expect(answer.status).to.equal(200);
        expect(answer.text).to.equal(method === 'HEAD' ? '' : '{"message":"hello"}');
      }
    });
  }

  it('gets 405 for POST /api/hello, and the answer names the allowed methods', async () => {
    const answer = await gateway.call('/api/hello', { method: 'POST', body: {} });
    expect(answer.status).to.equal(405);
    expect(answer.headers['allow']).to.equal('GET, HEAD');
  });
});
