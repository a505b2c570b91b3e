import { expect } from 'chai';
import { DIALECTS, dialectRows } from '../../core/dialects/dialects';
import { runTollgate } from '../support/command-line';

describe('tollgate explain members', () => {
  it('lists members, content parts and tools with their classes, and needs no running gateway', async () => {
    const { status, out } = await runTollgate(['explain', 'members']);
    expect(status).to.equal(0);
    expect(out).to.match(/^messages +member +thread +outside +thread +.*\{"type": "create"\}/m);
    expect(out).to.match(/^messages +content +document \(base64\) +outside/m);
    expect(out).to.match(/^messages +tool +web_search_\* +priced +.*webSearch/m);
    expect(out).to.match(/^embeddings +member +input +bounded/m);
  });

  it('prints the rows of one protocol as JSON with --json', async () => {
    const { out } = await runTollgate(['--json', 'explain', 'members', 'chat']);
    const items = dialectRows(DIALECTS.chat).map((row) => ({ protocol: 'chat', ...row }));
    expect(JSON.parse(out)).to.deep.equal({ items });
  });

  it('refuses an unknown protocol with status 2', async () => {
    expect((await runTollgate(['explain', 'members', 'morse'])).status).to.equal(2);
  });
});

describe('tollgate explain dialects', () => {
  it('lists what becomes of what clients send, and what upstreams lack', async () => {
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
    expect(items[0]).to.have.all.keys('side', 'dialect', 'name', 'names', 'fate', 'when', 'why');
  });
});
