import { expect } from 'chai';
import { costLines, REQUEST_TABLES } from '../../core/protocols/request-tables';
import { runTollgate } from '../support/command-line';

describe('tollgate explain members', () => {
  it('lists request members, content parts and tools with their cost classes, without a running gateway', async () => {
    const { status, out } = await runTollgate(['explain', 'members']);
    expect(status).to.equal(0);
    expect(out).to.match(/^messages +member +thread +outside +thread +.*\{"type": "create"\}/m);
    expect(out).to.match(/^messages +content +document \(base64\) +outside/m);
    expect(out).to.match(/^messages +tool +web_search_\* +priced +.*webSearch/m);
    expect(out).to.match(/^embeddings +member +input +bounded/m);
  });

  it('prints the rows of one protocol as JSON with --json', async () => {
    const { out } = await runTollgate(['--json', 'explain', 'members', 'chat']);
    const items = costLines(REQUEST_TABLES.chat).map((line) => ({ protocol: 'chat', ...line }));
    expect(JSON.parse(out)).to.deep.equal({ items });
  });

  it('refuses an unknown protocol with status 2', async () => {
    expect((await runTollgate(['explain', 'members', 'morse'])).status).to.equal(2);
  });
});

describe('tollgate explain dialects', () => {
  it('lists what the gateway does with each member of a request, and which features upstreams lack', async () => {
    const { status, out } = await runTollgate(['explain', 'dialects']);
    expect(status).to.equal(0);
    expect(out).to.match(/^from +messages +service_tier +refused +not "auto", "default", "standard_only" +asks for/m);
    expect(out).to.match(/^to +gemini +\w+.* +(refused|dropped)/m);
    expect(out).to.match(/^to +messages +outputFormat, response_format, text\.format +refused +JSON without/m);
  });

  it('prints the rows of one dialect as JSON with --json', async () => {
    const { out } = await runTollgate(['--json', 'explain', 'dialects', 'converse']);
    const { items } = JSON.parse(out);
    expect(items).to.have.length.above(5);
    for (const item of items) expect(item).to.include({ side: 'to', dialect: 'converse' });
    expect(items[0]).to.have.all.keys('side', 'dialect', 'name', 'names', 'action', 'when', 'why');
  });
});

describe('tollgate explain settings', () => {
  it('lists each setting of both files with its default and meaning', async () => {
    const { status, out } = await runTollgate(['explain', 'settings']);
    expect(status).to.equal(0);
    expect(out).to.match(/^gateway +serviceEndpoints\.<name>\.weight +1 +Its share of the calls among equals\.$/m);
    expect(out).to.match(/^gateway +pipelines\.<name>\.policies\.model-request\.action\.slowBodyTimeout +"30s" +\S/m);
    expect(out).to.match(/^system +ledger\.waitReplicas +0 +\S/m);
    expect(out).to.match(/^system +plugins\.sandbox\.renewBefore +"3m" +\S/m);
    const lines = out.split('\n');
    expect(new Set(lines).size).to.equal(lines.length);
  });

  it('lists only settings whose path contains the given text, as JSON with --json', async () => {
    const { out } = await runTollgate(['--json', 'explain', 'settings', 'webSockets.']);
    expect(JSON.parse(out).items[0]).to.include({ file: 'system', setting: 'webSockets.maxPerKey', default: 8 });
    expect(JSON.parse(out).items).to.have.length(4);
  });
});
