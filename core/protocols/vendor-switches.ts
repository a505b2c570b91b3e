import { each, kept, LATER, outside, PASSES_OF_A_LOOP, priced, refused } from './request-rows';
import type { MemberRow, Needs } from './request-table';

/** A search that the vendor runs for a call. The model reads the results as input, and answers do not report the search. */
export const VENDOR_SEARCH: MemberRow = {
  ...priced('one search for each call'),
  meter: 'webSearch',
  leaves: 'fetch',
  furtherPasses: 1,
  ...refused('asks for searches that run at one vendor'),
};

const AT_VENDOR = refused('asks for something that one vendor alone has');
const PASSED_ON = { leaves: 'pass on' } as const;
const TOOLS_AT_VENDOR = {
  ...priced('runs tools at the vendor'),
  ...PASSED_ON,
  furtherPasses: PASSES_OF_A_LOOP,
  ...AT_VENDOR,
};
const FETCHED = { leaves: 'fetch' } as const;
const PRICED_RESULTS = { ...priced('what the vendor finds has a price'), ...FETCHED, furtherPasses: 1, ...AT_VENDOR };

/**
 * Request members for features that cost more than the model's price for tokens. Only some vendors know each member, and they accept it in
 * every protocol that they speak.
 */
export const VENDOR_SWITCHES: Readonly<Record<string, MemberRow>> = {
  // alibabacloud.com/help/en/model-studio/web-search, 2026-02; docs.qwencloud.com, "Web search": each call is billed one search.
  enable_search: { ...VENDOR_SEARCH, harmless: [false] },
  search_options: VENDOR_SEARCH,
  // alibabacloud.com/help/en/model-studio, "Qwen API reference", 2026-02: the member makes the vendor run code for the call.
  enable_code_interpreter: { ...TOOLS_AT_VENDOR, harmless: [false] },
  vl_high_resolution_images: {
    ...outside('an image has more tokens than `imageTokens`'),
    ...AT_VENDOR,
    harmless: [false],
  },
  // cloud.tencent.com/document/product/1729/111007, 2026-11: both members make the vendor search.
  ...each({ ...VENDOR_SEARCH, harmless: [false] }, 'enable_enhancement', 'force_search_enhancement'),
  // cloud.baidu.com/doc/qianfan-docs/s/Wm8r4sw29, 2025-09: `web_search` makes the vendor search.
  web_search: { ...VENDOR_SEARCH, harmless: [false, { enable: false }] },
  // docs.x.ai/docs/guides/live-search, 2025-11: charged by source. The vendor has answered 410 since 2026-06 (github.com/vercel/ai/pull/15718), but
  // resellers of its models may accept the member.
  search_parameters: { ...PRICED_RESULTS, harmless: [{ mode: 'off' }] },
  // docs.x.ai/docs/guides/deferred-chat-completions, 2026-11: the vendor keeps the answer, and the client fetches it later.
  deferred: LATER,
  // console.groq.com/docs/compound/systems, 2026-11: up to ten calls of tools at the vendor.
  ...each(TOOLS_AT_VENDOR, 'compound_custom', 'search_settings'),
  // docs.venice.ai/api-reference, 2026-11: the vendor searches (`enable_web_search`), and reads whole pages (`enable_web_scraping`).
  venice_parameters: PRICED_RESULTS,
  // openrouter.ai/docs/guides/features/plugins, 2026-11: each plugin runs once; searches cost by result, documents by page.
  plugins: { ...PRICED_RESULTS, harmless: [[]] },
  // openrouter.ai/docs/guides/routing/model-fallbacks, 2026-11: `models` lists further models that may answer, at their own prices.
  models: {
    ...priced('other models, with prices of their own'),
    ...PASSED_ON,
    needs: listedModels,
    ...AT_VENDOR,
    harmless: [[]],
  },
  route: { ...priced('another model may answer, with a price of its own'), ...PASSED_ON, ...AT_VENDOR },
  // openrouter.ai/docs/guides/routing/provider-selection, 2026-11: hosts of one model differ in price.
  provider: { ...priced('hosts have prices of their own'), ...PASSED_ON, ...AT_VENDOR, harmless: [{}] },
  // openrouter.ai/docs/guides/features/presets, 2026-11: a preset has instructions and models, and OpenRouter stores it in the platform's account.
  preset: { ...kept('prompt', 'a preset at the vendor'), ...PASSED_ON, ...AT_VENDOR },
};

/** Returns the models in a list of names; undefined if the value is no list of names. */
function listedModels(value: unknown): Needs | undefined {
  if (!Array.isArray(value) || !value.every((model) => typeof model === 'string')) return undefined;
  return { models: value.map((model) => ({ model, maxOutputTokens: undefined })) };
}
