import { clampToCountable, e8RoundedUp } from '../../core/base/money';
import type { ModelRequest } from '../../core/calls/call';
import { estimatedInput, furtherModels } from '../../core/calls/candidates';
import type { Candidate, ModelEntry, Normalizing, Upstream } from '../../core/catalog/catalog';
import { type CacheWrites, maxCost, pricesFor } from '../../core/catalog/price';
import { PROTOCOLS } from '../../core/catalog/protocols';
import type { TokenMeter } from '../../core/catalog/usage';
import { type CostFactors, furtherPassesOf, piecesOf, pointsOutside } from '../../core/protocols/cost-factors';

/** The factor below which a rough cost is surely lower than another one, in spite of rounding. */
const SURELY_LESS = 1 - 1e-9;

/** The rough costs (plain numbers) of the candidates for the hold that is being computed. Every hold reuses this memory. */
let roughs = new Float64Array(64);

/**
 * Returns the most that a call can cost: the most expensive candidate at its highest prices and its own bounds of tokens. Plain numbers
 * find the few candidates that can be the most expensive, and only these are computed exactly.
 */
export function holdFor(request: ModelRequest, candidates: readonly Candidate[]): bigint {
  const count = candidates.length;
  if (count === 1) return clampToCountable(exactHold(request, candidates[0] as Candidate));
  const { asked, toolUses, extras } = request.reading;
  const isPlain = asked === undefined && toolUses === undefined && extras === undefined;
  if (roughs.length < count) roughs = new Float64Array(count * 2);
  let dearest = 0;
  for (let at = 0; at < count; at += 1) {
    const rough = roughCost(request, candidates[at] as Candidate);
    roughs[at] = rough;
    if (rough > dearest) dearest = rough;
  }
  let holdE8 = 0n;
  for (let at = 0; at < count; at += 1) {
    // Rough costs ignore tiers, speeds, regions, tool uses and separately charged features.
    if (isPlain && (roughs[at] as number) < dearest * SURELY_LESS) continue;
    const costE8 = exactHold(request, candidates[at] as Candidate);
    if (costE8 > holdE8) holdE8 = costE8;
  }
  return clampToCountable(holdE8);
}

/** Returns the most that a call can cost at one candidate, including other models that may run. */
function exactHold(request: ModelRequest, candidate: Candidate): bigint {
  const { asked, toolUses, extras } = request.reading;
  if (asked === undefined && toolUses === undefined && extras === undefined) return plainHold(request, candidate);
  let holdE8 = holdForModel(request, candidate, candidate.model);
  for (const each of alsoRunning(request, candidate)) holdE8 += holdForModel(each.request, candidate, each.model);
  return holdE8;
}

/** Returns the hold of a call that contains only text and images, at the highest of the possible prices. */
function plainHold(request: ModelRequest, candidate: Candidate): bigint {
  const { model, rough } = candidate;
  const input = inputTokens(request, candidate, model);
  const output = outputTokens(request, model);
  const cacheWrites = cacheWritesAt(request, candidate);
  // The rough prices are plain numbers with the values of the exact prices. A sum below 2^53 is therefore exact, too.
  const costE14 = input * rough.maxInputRate[cacheWrites] + output * rough.maxOutputRate;
  if (costE14 <= Number.MAX_SAFE_INTEGER) return BigInt(e8RoundedUp(costE14));
  return maxCost(input, output, model.price.possible, cacheWrites);
}

/** Returns the other models that a call may run at a candidate, each with the call as that model receives it. */
function alsoRunning(request: ModelRequest, candidate: Candidate) {
  const { extras } = request.reading;
  if (extras === undefined) return [];
  const models = extras.flatMap((extra) => extra.models ?? []);
  return furtherModels(models, candidate).map(({ model, maxOutputTokens = request.maxOutputTokens }) => ({
    model,
    request: { ...request, maxOutputTokens },
  }));
}

/** Returns the meters of the call's extra tokens (tokens other than text) for which a model has a price. */
function extraMeters({ reading: { extras } }: ModelRequest, { price }: ModelEntry): readonly TokenMeter[] | undefined {
  return extras?.flatMap(({ meters = [] }) => meters).filter((meter) => !price.unpriced.has(meter));
}

function holdForModel(request: ModelRequest, candidate: Candidate, model: ModelEntry): bigint {
  const { asked } = request.reading;
  const cacheWrites = cacheWritesAt(request, candidate);
  const cards = pricesFor(model.price, asked) ?? model.price.possible;
  const input = inputTokens(request, candidate, model);
  const output = outputTokens(request, model);
  return maxCost(input, output, cards, cacheWrites, extraMeters(request, model)) + piecesCost(request, model);
}

/** Returns how many tokens count for the limits per minute: the estimated input and the maximum output. */
export function tokensFor(request: ModelRequest, candidates: readonly Candidate[]): number {
  let tokens = 0;
  for (const { model } of candidates)
    tokens = Math.max(tokens, estimatedInput(request, model) + outputTokens(request, model));
  return tokens;
}

/**
 * Returns the most tokens that a truthful vendor can report for a call at a candidate. If the body refers to content outside of itself, the
 * input may exceed the input that the hold covers, up to the context window.
 */
export function maxReportedTokens(
  request: ModelRequest,
  candidate: Candidate,
): { readonly input: number; readonly output: number } {
  const { reading } = request;
  const isOutside = pointsOutside(reading);
  if (!isOutside && reading.extras === undefined) {
    const { model } = candidate;
    return { input: inputTokens(request, candidate, model), output: outputTokens(request, model) };
  }
  const most = { input: 0, output: 0 };
  const add = (each: ModelRequest, model: ModelEntry) => {
    const call = isOutside ? { ...each, reading: { ...reading, isUnbounded: true } } : each;
    most.input += inputTokens(call, candidate, model);
    most.output += outputTokens(call, model);
  };
  add(request, candidate.model);
  for (const { model, request: each } of alsoRunning(request, candidate)) add(each, model);
  return most;
}

/** Returns the most output tokens that one choice can have at any of the candidates. */
function maxOutputTokensOf({ maxOutputTokens }: ModelRequest, candidates: readonly Candidate[]): number {
  return Math.min(
    maxOutputTokens ?? Number.POSITIVE_INFINITY,
    Math.max(...candidates.map(({ model }) => model.maxOutput)),
  );
}

function roughCost(request: ModelRequest, candidate: Candidate): number {
  const { model, rough } = candidate;
  const output = outputTokens(request, model);
  return (
    inputTokens(request, candidate, model) * rough.maxInputRate[cacheWritesAt(request, candidate)] +
    output * rough.maxOutputRate
  );
}

/** Returns how a candidate may write its prompt cache. Vendors of protocols other than Messages write it unprompted, even for a translated call. */
function cacheWritesAt({ reading: { cacheWrites } }: ModelRequest, { dialect }: Candidate): CacheWrites {
  return cacheWrites === 'none' && dialect !== undefined && dialect !== 'messages' ? 'minutes' : cacheWrites;
}

/** Returns the most that the uses of the vendor's tools can cost, without tokens, in E8 (1e-8 USD). */
function piecesCost({ reading: { toolUses }, choices }: ModelRequest, model: ModelEntry): bigint {
  let costE8 = 0n;
  for (const tool of toolUses ?? [])
    if (tool.meter !== undefined)
      costE8 += BigInt(piecesOf(tool, model) * choices) * (model.price.pieces.get(tool.meter) ?? 0n);
  return costE8;
}

/** Returns the most input tokens of all model runs that one call can cause. */
function inputTokens(
  { protocol, reading, inputs = 1 }: ModelRequest,
  { upstream, dialect }: Candidate,
  model: ModelEntry,
): number {
  const context = model.context * inputs;
  // Vendors of Messages add their own text to calls with tools. The estimate of a call that came in another protocol may not include this text.
  const overhead = dialect === undefined || !reading.hasTools ? 0 : model.toolOverheadTokens;
  const ofBody = isWholeContext(reading, model, upstream)
    ? context
    : Math.min(bodyTokens(reading, model, model.normalizes ?? USUALLY[dialect ?? protocol]) + overhead, context);
  return ofBody + furtherPassesOf(reading, model) * context;
}

/** Returns whether the vendor reads content whose size is bounded neither by the body nor by the operator. */
function isWholeContext(reading: CostFactors, { bounds }: ModelEntry, { freeMembers, tier }: Upstream): boolean {
  if (reading.isUnbounded) return true;
  if (reading.imagesByUrl > 0 && bounds.imageByUrl === undefined) return true;
  if (reading.documents > 0 && bounds.documentByUrl === undefined) return true;
  const isHeld = (name: string) => freeMembers?.has(name) !== true;
  return reading.heldMembers.some(isHeld) || (tier !== 'official' && reading.smallMembers.some(isHeld));
}

/** How tokenizers normalize text if the model's settings do not say. The tokenizers of Chat and Responses are public, and normalize nothing. */
const USUALLY: Readonly<Record<NonNullable<Candidate['dialect']>, Normalizing>> = {
  chat: 'none',
  responses: 'none',
  embeddings: 'none',
  messages: 'nfkc',
  own: 'nfkc',
};

/** Returns the most tokens of the body, including the content that it points to, within the operator's bounds. */
function bodyTokens(reading: CostFactors, model: ModelEntry, normalizes: Normalizing): number {
  const { bounds, imageTokens, tokenizerFactor, toolOverheadTokens } = model;
  const text = reading.textTokens + (normalizes === 'nfkc' ? reading.normalizing() : 0);
  let images = 0;
  for (const [detail, count] of reading.images) images += count * imageTokens[detail];
  return (
    Math.ceil(text * tokenizerFactor) +
    images +
    reading.imagesByUrl * (bounds.imageByUrl ?? 0) +
    reading.documents * (bounds.documentByUrl ?? 0) +
    reading.toolOverheads * toolOverheadTokens +
    reading.keptTokens
  );
}

/** Returns the most output tokens: the call's limit, plus what the vendor writes besides the answer. */
function outputTokens(
  { maxOutputTokens, choices, reading }: ModelRequest,
  { maxOutput, tokenizerFactor }: ModelEntry,
): number {
  const predicted = Math.ceil(reading.predictedTokens * tokenizerFactor);
  const ofAnswer = Math.min(maxOutputTokens ?? maxOutput, maxOutput) + predicted;
  return ofAnswer * choices + reading.furtherAnswers * maxOutput;
}

/** The lowest output limit, in tokens per choice, to which the gateway reduces a call if the money does not cover a higher limit. */
const MIN_OUTPUT = 1_024;

/** Returns the smallest hold with which the gateway serves a call; undefined for a call that has no output limit. */
export function minHold(request: ModelRequest, candidates: readonly Candidate[]): bigint | undefined {
  if (request.operation !== undefined) return undefined;
  const maxOutputTokens = Math.min(MIN_OUTPUT, maxOutputTokensOf(request, candidates));
  return holdFor({ ...request, maxOutputTokens }, candidates);
}

/**
 * Returns the call with the highest output limit that the hold `heldE8` covers. `heldE8` is at least the smallest hold that the gateway
 * accepts for the call.
 */
export function clampTo(heldE8: bigint, request: ModelRequest, candidates: readonly Candidate[]): ModelRequest {
  // If the client named no limit, the gateway writes one that every candidate accepts.
  const asked =
    request.maxOutputTokens === undefined ? minOfMaxOutputs(candidates) : maxOutputTokensOf(request, candidates);
  let most = Math.min(MIN_OUTPUT, asked);
  let tooMany = asked + 1;
  while (tooMany - most > 1) {
    const middle = most + Math.floor((tooMany - most) / 2);
    if (holdFor({ ...request, maxOutputTokens: middle }, candidates) <= heldE8) most = middle;
    else tooMany = middle;
  }
  return limitedTo(most, request);
}

/** Returns the call with an output limit in its body: the client's own, or a limit that every candidate accepts if the client named none. */
export function withLimit(request: ModelRequest, candidates: readonly Candidate[]): ModelRequest {
  if (request.maxOutputTokens !== undefined || request.operation !== undefined) return request;
  return limitedTo(minOfMaxOutputs(candidates), request);
}

function minOfMaxOutputs(candidates: readonly Candidate[]): number {
  return Math.min(...candidates.map(({ model }) => model.maxOutput));
}

/** Returns the call with the output limit `maxOutputTokens`, written into the members that the client used. A lower limit of the client stays. */
function limitedTo(maxOutputTokens: number, request: ModelRequest): ModelRequest {
  const limits: readonly string[] = PROTOCOLS[request.protocol].limits;
  const usual = limits.slice(0, 1);
  const named = limits.filter((member) => (request.members.get(member) ?? 'null') !== 'null');
  const lowered = (member: string) => Math.min(Number(request.members.get(member)), maxOutputTokens);
  const edits =
    named.length === 0
      ? usual.map((member) => ({ member, set: String(maxOutputTokens) }))
      : named.map((member) => ({ member, set: String(lowered(member)) }));
  const members = new Map(request.members);
  for (const { member, set } of edits) members.set(member, set);
  return { ...request, maxOutputTokens, members, edits: [...(request.edits ?? []), ...edits] };
}
