import { expect } from 'chai';
import type { Browser } from 'playwright-core';
import { startBrowser } from '../support/browser';
import { ask } from '../support/calls';
import { startGateway, type TestGateway } from '../support/gateway';
import { listen, type TestServer } from '../support/serve';
import { chatStream, startUpstream, type TestUpstream } from '../support/upstream';

/** Serves a page of a third party on a port of its own, which makes it another origin. */
function servePage(): Promise<TestServer> {
  return listen((_, response) => {
    response.writeHead(200, { 'content-type': 'text/html' });
    response.end('<!doctype html><title>An app</title>');
  });
}

describe('a page of another origin in a real browser', function () {
  this.timeout(60_000);
  let upstream: TestUpstream;
  let gateway: TestGateway;
  let browser: Browser;
  let allowed: TestServer;
  let other: TestServer;
  let key: string;

  before(async () => {
    upstream = await startUpstream();
    [allowed, other, browser] = await Promise.all([servePage(), servePage(), startBrowser()]);
    gateway = await startGateway({
      upstreams: { acme: { url: upstream.url } },
      system: { cors: { origins: [allowed.url] } },
    });
    ({ key } = await gateway.newCustomer('10'));
  });
  after(async () => {
    await browser?.close();
    await gateway?.stop();
    await Promise.all([allowed?.close(), other?.close(), upstream?.stop()]);
  });
  beforeEach(() => upstream.reset());

  /** Streams a call with a script that runs in the page. */
  async function callFrom({ url }: TestServer, apiKey = key) {
    const page = await browser.newPage();
    try {
      await page.goto(url);
      return await page.evaluate(
        async ({ address, bearer, body }) => {
          try {
            const headers = { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' };
            const answer = await fetch(address, { method: 'POST', headers, body });
            const text = await answer.text();
            return { status: answer.status, text, requestId: answer.headers.get('x-svc-request-id') };
          } catch (error) {
            return { blocked: String(error) };
          }
        },
        { address: `${gateway.url}/v1/chat/completions`, bearer: apiKey, body: JSON.stringify(ask({ stream: true })) },
      );
    } finally {
      await page.close();
    }
  }

  it('streams a call and reads the request id if its origin is allowed', async () => {
    upstream.next(chatStream({ texts: ['one ', 'two '] }));
    const answer = await callFrom(allowed);
    expect(answer).to.include({ status: 200 });
    expect(answer.text).to.include('one ').and.include('[DONE]');
    expect(answer.requestId).to.match(/^req_/);
    expect(upstream.calls).to.have.length(1);
  });

  it('reads the error of a refused call if its origin is allowed', async () => {
    const answer = await callFrom(allowed, 'sk-svc-wrong');
    expect(answer).to.include({ status: 401 });
    expect(answer.text).to.include('INVALID_API_KEY');
  });

  it('cannot send a call if its origin is not allowed, because the browser blocks the call', async () => {
    upstream.always(chatStream());
    expect(await callFrom(other)).to.deep.equal({ blocked: 'TypeError: Failed to fetch' });
    expect(upstream.calls).to.have.length(0);
  });
});
