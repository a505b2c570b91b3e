import { expect } from 'chai';
import type { ApiKeys } from '../../../core/accounts/identify';
import { Call } from '../../../core/calls/call';
import { buildCatalog, type Candidate, type Upstream } from '../../../core/catalog/catalog';
import { GatewayError } from '../../../core/errors';
import { UpstreamHealth } from '../../../core/health/health';
import strategyRouting from '../../../policies/strategy-routing';
import { sampleAdapter, sampleCandidate, sampleModel, sampleUpstream } from '../../support/catalog-samples';
import { SampleResponse, sampleGateway, sampleRequest } from '../../support/exchange';
import { KEY_RATES } from '../../support/key-rates';
import { sampleModelRequest } from '../../support/request-sample';

interface Asked {
  readonly model: string;
  readonly protocol?: 'messages' | 'chat';
  readonly allowedModels?: readonly string[];
  /** The key's list in the ledger, if the node's copy is older. */
  readonly allowedNow?: readonly string[];
  readonly settings?: { strategy?: 'quality' | 'speed' | 'cost'; upstreams?: readonly string[]; affinity?: boolean };
  readonly health?: UpstreamHealth;
  readonly session?: string;
}

async function route(upstreams: readonly Upstream[], asked: Asked): Promise<{ names: string[]; call: Call }> {
  const health = asked.health ?? new UpstreamHealth();
  const keys: ApiKeys = {
    rates: KEY_RATES,
    admitRequest: async (key) => key,
    identify: async () => Promise.reject(new Error('the key is known already')),
    confirm: async (key) => ({
      ...key,
      settings: { ...key.settings, allowedModels: asked.allowedNow ?? key.settings.allowedModels },
    }),
    made: () => undefined,
    countRefused: async () => undefined,
    remember: (key) => key,
  };
  const gateway = sampleGateway({ catalog: buildCatalog(upstreams), health, keys });
  const request = sampleRequest('POST', '/v1/messages');
  const response = new SampleResponse(request);
  const call = new Call(request, response);
  call.key = { accountId: 'a', keyId: 'k', settings: { rev: 0, name: 'n', allowedModels: asked.allowedModels } };
  call.request = sampleModelRequest({
    modelRequested: asked.model,
    protocol: asked.protocol ?? 'messages',
    session: asked.session,
  });
  const settings = { strategy: 'quality', affinity: true, upstreams: ['*'], ...asked.settings };
  const provided = await strategyRouting.prepare(settings, gateway)(call, request, response);
  const candidates: readonly Candidate[] = provided?.candidates ?? [];
  return { names: candidates.map(({ upstream }) => upstream.name), call };
}

async function refusal(upstreams: readonly Upstream[], asked: Asked): Promise<GatewayError> {
  try {
    await route(upstreams, asked);
  } catch (error) {
    if (error instanceof GatewayError) return error;
    throw error;
  }
  throw new Error('nothing was refused');
}

const chatOnly = { adapters: [sampleAdapter('chat', ['chat'])], translate: 'never' } as const;
const off = { disabled: 'KEY is not set' };

describe('strategy-routing', () => {
  const two = [sampleUpstream('b', [sampleModel('m')]), sampleUpstream('a', [sampleModel('m')], { tier: 'official' })];

  it('returns all candidates, best first, and records the ranking inputs', async () => {
    const { names, call } = await route(two, { model: 'M' });
    expect(names).to.deep.equal(['a', 'b']);
    expect(call.facts).to.include({ strategy: 'quality', model: 'm' });
  });

  it('considers only the upstreams in its settings', async () => {
    expect((await route(two, { model: 'm', settings: { upstreams: ['b'] } })).names).to.deep.equal(['b']);
  });

  it('shares ties by weight', async () => {
    const ties = [
      sampleUpstream('heavy', [sampleModel('m')], { weight: 9 }),
      sampleUpstream('light', [sampleModel('m')]),
    ];
    let heavyFirst = 0;
    for (let round = 0; round < 500; round += 1)
      if ((await route(ties, { model: 'm' })).names[0] === 'heavy') heavyFirst += 1;
    expect(heavyFirst).to.be.within(400, 490);
  });

  it('sends all calls of a session to one upstream, and distributes calls without a session', async () => {
    const names = ['a', 'b', 'c', 'd', 'e'];
    const upstreams = names.map((name) => sampleUpstream(name, [sampleModel('m')]));
    const health = new UpstreamHealth();
    const firstOf = async (more: Partial<Asked>) => (await route(upstreams, { model: 'm', health, ...more })).names[0];
    const firstsOf = async (calls: number, more: Partial<Asked> = {}) =>
      new Set(await Promise.all(Array.from({ length: calls }, () => firstOf(more))));
    const homes = await Promise.all(
      Array.from({ length: 60 }, async (_, index) => {
        const firsts = await firstsOf(4, { session: `session ${index}` });
        expect(firsts.size).to.equal(1);
        return [...firsts][0];
      }),
    );
    expect(new Set(homes)).to.deep.equal(new Set(names));
    for (const name of names) health.answered(sampleCandidate(name), { accountId: 'one', ms: 100, stream: false });
    expect((await firstsOf(60)).size).to.be.greaterThan(1);
    const without = { session: 'session 1', settings: { affinity: false } };
    expect((await firstsOf(60, without)).size).to.be.greaterThan(1);
  });

  it('lets the next call probe an upstream when this one is refused before it was sent', async () => {
    let nowMs = 0;
    const health = new UpstreamHealth({ now: () => nowMs });
    health.upstream('a').ejection.putOut(1_000, nowMs);
    nowMs = 1_000;
    const { names, call } = await route(two, { model: 'm', health });
    expect(names).to.deep.equal(['a', 'b']);
    expect((await route(two, { model: 'm', health })).names, 'while it is probed').to.deep.equal(['b']);
    await call.end();
    const { call: asking } = await route(two, { model: 'm', health });
    asking.facts.attempts = 1;
    await asking.end();
    expect((await route(two, { model: 'm', health })).names, 'one that asked is heard of').to.deep.equal(['b']);
  });

  it('refuses an unknown model and suggests the nearest', async () => {
    const error = await refusal([sampleUpstream('a', [sampleModel('acme-large')])], { model: 'acme-lagre' });
    expect(error.code).to.equal('MODEL_NOT_PRICED');
    expect(error.message).to.equal('The model "acme-lagre" does not exist on this gateway. Did you mean acme-large?');
    expect(error.options.param).to.equal('model');
  });

  it('shows only the beginning of a very long name', async () => {
    expect((await refusal(two, { model: 'x'.repeat(9_999) })).message.length).to.be.lessThan(200);
  });

  it('refuses an ambiguous name and lists its meanings', async () => {
    const snapshots = [sampleUpstream('a', [sampleModel('m-20250101'), sampleModel('m-20251101')])];
    const error = await refusal(snapshots, { model: 'm' });
    expect(error.code).to.equal('MODEL_AMBIGUOUS');
    expect(error.options.details).to.deep.equal({ models: ['m-20250101', 'm-20251101'] });
  });

  it('names the protocols of a model that is not served in this one', async () => {
    const error = await refusal([sampleUpstream('a', [sampleModel('m')], chatOnly)], { model: 'm' });
    expect(error.code).to.equal('MODEL_NOT_SUPPORTED');
    expect(error.message).to.contain('/v1/chat/completions');
    const untranslated = two.map((each) => ({ ...each, translate: 'never' as const }));
    expect((await refusal(untranslated, { model: 'm', protocol: 'chat' })).message).to.contain('/v1/messages');
  });

  it('explains why every upstream of the model is disabled', async () => {
    const error = await refusal([sampleUpstream('a', [sampleModel('m')], off)], { model: 'm' });
    expect(error.code).to.equal('ALL_PROVIDERS_FAILED');
    expect(error.options.details).to.deep.equal({
      attempts: [{ upstream: 'a', outcome: 'disabled', reason: 'KEY is not set' }],
    });
  });

  it("refuses a model that is not on the key's list", async () => {
    expect((await refusal(two, { model: 'm', allowedModels: ['n'] })).code).to.equal('MODEL_NOT_ALLOWED');
    expect((await route(two, { model: 'm', allowedModels: ['v/M'] })).names).to.have.length(2);
  });

  it("accepts a model that was added to the key's list a moment ago", async () => {
    expect((await route(two, { model: 'm', allowedModels: ['n'], allowedNow: ['n', 'm'] })).names).to.have.length(2);
  });

  it('refuses one snapshot to a key that may use the other', async () => {
    const snapshots = [sampleUpstream('a', [sampleModel('m-20250101'), sampleModel('m-20251101')])];
    const error = await refusal(snapshots, { model: 'm-20251101', allowedModels: ['m-20250101'] });
    expect(error.code).to.equal('MODEL_NOT_ALLOWED');
  });
});
