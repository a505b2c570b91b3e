import { expect } from 'chai';
import { runTollgate } from '../support/command-line';
import { temporaryFolder } from '../support/configuration-folder';
import { textOf } from '../support/sources';

const SYSTEM = textOf('system.config.yml');

/** Makes a folder with the shipped configuration, in which one model of the vendor is written as `model`. */
function folderWith(model: string): string {
  const text = textOf('gateway.config.yml').replace(/^ {6}claude-opus-5-5: .*$/m, `      claude-opus-5-5: ${model}`);
  return temporaryFolder({ 'gateway.config.yml': text, 'system.config.yml': SYSTEM });
}

const OWN =
  '{ context: 1000000, maxOutput: 64000, price: { input: 5, output: 20, cacheWrite: 5, cacheWrite1h: 8, cacheRead: 0.2, pieces: { webSearch: 0.01, webFetch: 0 }, geos: { us: { factor: 1.1 } } } } # ours';

describe('tollgate catalogue', () => {
  it('diff finds no difference between the shipped configuration and the published prices', async () => {
    const { status, notes } = await runTollgate(['catalogue', 'diff', folderWith('{ from: anthropic }')]);
    expect(notes).to.match(/8 models with published prices: no difference/);
    expect(status).to.equal(0);
  });

  it('diff prints every difference with the day and page of publication, and exits with 1', async () => {
    const { status, out } = await runTollgate(['catalogue', 'diff', folderWith(OWN), '--json']);
    expect(status).to.equal(1);
    const { items } = JSON.parse(out) as { items: Record<string, unknown>[] };
    expect(items.map(({ what, configured, published }) => [what, configured, published])).to.deep.equal([
      ['maxOutput', '64000', '128000'],
      ['price.input', '5.00000000', '4.00000000'],
      [
        'price (us)',
        'input 5.50000000, cacheRead 0.22000000, cacheWrite 5.50000000, cacheWrite1h 8.80000000, output 22.00000000',
        'input 4.40000000, cacheRead 0.22000000, cacheWrite 5.50000000, cacheWrite1h 8.80000000, output 22.00000000',
      ],
    ]);
    expect(items[0]).to.include({ upstream: 'anthropic', model: 'claude-opus-5-5', date: '2026-10-24' });
  });

  it('has replaced the command `prices`, which exits with 2', async () => {
    expect((await runTollgate(['prices', 'check'])).status).to.equal(2);
  });
});
