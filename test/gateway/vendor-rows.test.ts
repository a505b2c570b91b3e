import { expect } from 'chai';
import { responsesBody } from '../../demo/dialects/responses';
import { askIn, PATH, type TestProtocol } from '../support/calls';
import { answerOf, streamOf } from '../support/dialects';
import { showFigures } from '../support/show-figures';
import { useGateway, useUpstream } from '../support/story';
import { until } from '../support/until';
import { respond, type Script } from '../support/upstream';

/** Limits and prices of the models; prices are in USD per million tokens. */
const LARGE = { context: 200_000, maxOutput: 128_000, price: { input: 2, output: 10 } };
const CHAT = { ...LARGE, price: { input: 2.5, output: 15 } };
/** Models whose context window is far above what the texts of the rows have. */
const WIDE = { ...LARGE, context: 100_000_000, tokenizerFactor: 1 };
const WIDE_CHAT = { ...WIDE, price: CHAT.price, imageTokens: { low: 85, high: 2_500, original: 10_000 } };
const MOODY = {
  ...CHAT,
  price: { ...CHAT.price, tiers: { priority: { factor: 2 } } },
  mayAnswerWith: { tiers: ['priority'] },
};

const MODELS = { messages: ['large', LARGE], chat: ['chat', CHAT], responses: ['chat', CHAT] } as const;

interface Row {
  readonly is: string;
  readonly protocol?: TestProtocol;
  readonly calls: number;
  /** The balance in USD. */
  readonly funds: number;
  readonly limit?: string;
  readonly body: Readonly<Record<string, unknown>>;
  /** The JSON that stands for `"{{json}}"` in the body. */
  readonly json?: string;
  readonly usage: { readonly input: number; readonly output: number };
  readonly script?: (usage: Row['usage']) => Script;
  /** What the vendor charges, as a multiple of its plain price. */
  readonly factor?: number;
}

/** Texts of which a vendor may count each byte as a token, as they stand in a JSON string. */
const TEXTS: Readonly<Record<string, string>> = {
  '300,000 digits': '7'.repeat(300_000),
  '300,000 spaces': ' '.repeat(300_000),
  '150,000 `[]`': '[]'.repeat(150_000),
  emoji: '👩🏽‍🚀🏴󠁧󠁢󠁥󠁮󠁧󠁿'.repeat(7_000),
  'signs of a rare script': '𒀀𒁉'.repeat(37_500),
  'letters whose marks NFKC separates': 'Ǖ\u0323'.repeat(75_000),
  'U+FDFA, of which NFKC makes 18 characters': '\uFDFA'.repeat(100_000),
  'U+FDFA as an escape': '\\uFDFA'.repeat(50_000),
};

const TEXT = [{ role: 'user', content: '{{json}}' }];
const IMAGE = { url: 'data:image/png;base64,iVBORw0KGgo=' };
const IMAGE_START = `{"type":"image_url","image_url":{"url":"${IMAGE.url}"`;
const imageOf = (detail: string) => ({
  type: 'image_url',
  image_url: { ...IMAGE, ...(detail !== 'none' && { detail }) },
});

const pdf = { type: 'document', source: { type: 'url', url: 'https://files.example/long.pdf' } };

const ROWS: Row[] = [
  {
    is: 'sends ten calls at once with a PDF by URL on a key limited to $0.10',
    calls: 10,
    funds: 100,
    limit: '0.10',
    body: { messages: [{ role: 'user', content: [pdf] }], max_tokens: 100 },
    usage: { input: 200_000, output: 5 },
  },
  {
    is: 'sends 24 Chat calls without a limit on a balance of $0.50, each answered with 128,000 tokens',
    protocol: 'chat',
    calls: 24,
    funds: 0.5,
    body: { max_tokens: undefined },
    usage: { input: 10, output: 128_000 },
  },
  {
    is: 'sends `max_completion_tokens: 1` and `max_tokens: 100000` in one call',
    protocol: 'chat',
    calls: 1,
    funds: 10,
    body: { max_completion_tokens: 1, max_tokens: 100_000 },
    usage: { input: 10, output: 100_000 },
  },
  {
    is: 'gets a Responses answer with an unrequested `service_tier: priority`',
    protocol: 'responses',
    calls: 3,
    funds: 10,
    body: { model: 'moody', max_tokens: 1_000 },
    usage: { input: 20, output: 1_000 },
    factor: 2,
    script: (usage) => {
      const said = { id: 'resp_1', model: 'moody', createdAt: 1, texts: [], toolCalls: [], stop: 'end' } as const;
      const body = responsesBody({ ...said, usage: { ...usage, cacheRead: 0, cacheWrite: 0 } });
      return respond({ body: { ...body, service_tier: 'priority' } });
    },
  },
  ...[
    { context_management: [{ type: 'compaction', compact_threshold: 1_000 }] },
    { messages: [{ role: 'user', content: 'Hello' }, { type: 'compaction_trigger' }] },
    { messages: [{ role: 'user', content: 'Hello' }, { type: 'context_compaction' }] },
  ].map(
    (body): Row => ({
      is: `requests compaction in a Responses call with ${JSON.stringify(body)}, which runs the model once more`,
      protocol: 'responses',
      calls: 2,
      funds: 10,
      body: { ...body, max_tokens: 1_000 },
      usage: { input: 390_000, output: 129_000 },
    }),
  ),
];

/** Members with which vendors search, and members that are in no table, at an upstream that is not official. */
const SWITCHES: readonly Row['body'][] = [
  { enable_search: true },
  { enable_search: true, search_options: { forced_search: true } },
  { web_search: { enable: true } },
  { search_parameters: { mode: 'auto' } },
  { plugins: [{ id: 'web' }] },
  { vl_high_resolution_images: true },
  { enable_brand_new: true },
  { brand_new: 'on' },
];
for (const protocol of ['messages', 'chat', 'responses'] as const)
  for (const body of SWITCHES)
    ROWS.push({
      is: `sends ${JSON.stringify(body)} in a ${protocol} call, and the vendor reads what it found`,
      protocol,
      calls: 1,
      funds: 10,
      body: { ...body, max_tokens: 100 },
      usage: { input: 190_000, output: 5 },
    });

/** `SHOW_FIGURES=1` prints vendor's cost, hold, charge and loss of each row. Other rows are in vendor-bill.test.ts. */
describe('The platform loses nothing if a client', () => {
  const upstream = useUpstream();

  const gateway = useGateway(() => {
    const { url } = upstream;
    return {
      upstreams: {
        vendor: { url, models: { large: LARGE, chat: CHAT, moody: MOODY, wide: WIDE, 'wide-chat': WIDE_CHAT } },
      },
    };
  });
  beforeEach(() => upstream.reset());

  for (const row of ROWS) it(row.is, () => losesNothing(row));

  for (const protocol of ['messages', 'chat'] as const)
    for (const [is, text] of Object.entries(TEXTS)) {
      const read = JSON.parse(`"${text}"`) as string;
      // Vendors of Messages may normalise what they read.
      const input = Buffer.byteLength(protocol === 'messages' ? read.normalize('NFKC') : read) + 10;
      const body = { model: protocol === 'messages' ? 'wide' : 'wide-chat', messages: TEXT, max_tokens: 100 };
      it(`sends ${is} in a ${protocol} call, and the vendor reports each byte as a token`, () =>
        losesNothing({ is, protocol, calls: 1, funds: 1_000, body, json: `"${text}"`, usage: { input, output: 5 } }));
    }

  const IMAGES = { calls: 2, funds: 100, protocol: 'chat' } as const;
  for (const [detail, most] of Object.entries({ low: 85, high: 2_500, original: 10_000, auto: 10_000, none: 10_000 })) {
    const body = { model: 'wide-chat', messages: [{ role: 'user', content: Array(10).fill(imageOf(detail)) }] };
    it(`sends ten images of the detail ${detail}, each with the maximum number of tokens that the vendor documents`, () =>
      losesNothing({ ...IMAGES, is: detail, body, usage: { input: 10 * most + 10, output: 5 } }));
  }

  it('sends images with two `detail` members, even in different letter case', () => {
    const body = { model: 'wide-chat', messages: [{ role: 'user', content: ['{{json}}'] }] };
    const json = `${IMAGE_START},"detail":"original","detail":"low"}},${IMAGE_START},"detail":"low","Detail":"original"}}`;
    return losesNothing({ ...IMAGES, is: 'two details', body, json, usage: { input: 20_010, output: 5 } });
  });

  async function losesNothing(row: Row): Promise<void> {
    const { protocol = 'messages', usage, funds, limit, factor = 1 } = row;
    const [model, { price }] = MODELS[protocol];
    const plain = JSON.stringify(askIn(protocol, { model, ...row.body }));
    const body = row.json === undefined ? plain : plain.replace('"{{json}}"', () => row.json as string);
    upstream.always(row.script?.(usage) ?? plainAnswer(protocol, row.body['stream'] === true, usage));
    const broke = await gateway.newCustomer('0.00000001');
    const { json } = await gateway.call(PATH[protocol], { key: broke.key, body });
    const holdUsd = Number(json.error.details.requiredUsd);
    const { key } = await gateway.newCustomer(String(funds), limit === undefined ? {} : { balanceLimit: limit });

    await Promise.all(Array.from({ length: row.calls }, () => gateway.call(PATH[protocol], { key, body })));
    await until('the calls are settled', async () => (await gateway.balance(key)).heldUsd === '0.00000000');
    const asked = upstream.calls.length;
    const vendorUsd = (factor * asked * (usage.input * price.input + usage.output * price.output)) / 1e6;
    const chargedUsd = funds - Number((await gateway.balance(key)).balanceUsd);
    const lossUsd = Math.max(0, vendorUsd - chargedUsd);
    showFigures(row.is, { asked, vendorUsd, holdUsd, chargedUsd, lossUsd });
    expect(lossUsd).to.be.below(1e-9);
    expect(chargedUsd).to.be.at.most(Math.min(funds, Number(limit ?? funds)) + 1e-9);
    expect(chargedUsd).to.be.at.most(holdUsd * asked + 1e-9);
  }
});

function plainAnswer(protocol: TestProtocol, isStream: boolean, usage: Row['usage']): Script {
  return isStream ? streamOf(protocol, { usage }) : answerOf[protocol]({ usage });
}
