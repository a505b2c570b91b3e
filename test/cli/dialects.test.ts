import { expect } from 'chai';
import { DIALECTS, dialectRows } from '../../core/dialects/dialects';
import { runTollgate } from '../support/command-line';

describe('tollgate dialects show', () => {
  it('lists members, content parts and tools with their classes, and needs no running gateway', async () => {
    const { status, out } = await runTollgate(['dialects', 'show', 'messages']);
    expect(status).to.equal(0);
    expect(out).to.match(/^member +thread +outside +thread +.*\{"type": "create"\}/m);
    expect(out).to.match(/^content +document \(base64\) +outside/m);
    expect(out).to.match(/^tool +web_search_\* +priced +.*webSearch/m);
  });

  it('prints the same table as JSON with --json', async () => {
    const { out } = await runTollgate(['--json', 'dialects', 'show', 'chat']);
    expect(JSON.parse(out)).to.deep.equal({ items: dialectRows(DIALECTS.chat) });
  });

  it('refuses an unknown dialect with status 2', async () => {
    expect((await runTollgate(['dialects', 'show', 'morse'])).status).to.equal(2);
  });
});
