import { countsOf, UNKNOWN_USAGE, type Usage } from '../../catalog/usage';
import { asArray, asCount, asObject, asText, type JsonObject } from '../../json-values';
import { unknownNumbers } from '../unknown-numbers';

/** Known numbers of a usage report: charged, or parts of charged numbers. */
const KNOWN: ReadonlySet<string> = new Set([
  'promptTokenCount',
  'cachedContentTokenCount',
  'candidatesTokenCount',
  'thoughtsTokenCount',
  'toolUsePromptTokenCount',
  'totalTokenCount',
  'promptTokensDetails.tokenCount',
  'cacheTokensDetails.tokenCount',
  'candidatesTokensDetails.tokenCount',
  'toolUsePromptTokensDetails.tokenCount',
]);

/** Reads the usage of an answer; it has one pass. The prompt's count includes cached tokens; the answer's count excludes thoughts. */
export function readUsage(answer: JsonObject): Usage {
  const report = asObject(answer['usageMetadata']);
  if (report === undefined) return UNKNOWN_USAGE;
  const cached = asCount(report['cachedContentTokenCount']) ?? 0;
  const prompt = asCount(report['promptTokenCount']);
  const cachedAudio = ofModality(report['cacheTokensDetails'], 'AUDIO');
  const audio = Math.max(0, ofModality(report['promptTokensDetails'], 'AUDIO') - cachedAudio);
  const input =
    prompt === undefined ? undefined : prompt + (asCount(report['toolUsePromptTokenCount']) ?? 0) - cached - audio;
  const images = ofModality(report['candidatesTokensDetails'], 'IMAGE');
  const said = asCount(report['candidatesTokenCount']) ?? 0;
  const output = said + reasoningTokens(answer) - images;
  const counts = countsOf({
    input: input !== undefined && input >= 0 ? input : undefined,
    audioInput: audio || undefined,
    cacheRead: cached - cachedAudio || undefined,
    audioCacheRead: cachedAudio || undefined,
    output: output >= 0 ? output : undefined,
    imageOutput: images || undefined,
  });
  const pass = { model: asText(answer['modelVersion']) || undefined, counts };
  const unknown = unknownNumbers(report, KNOWN);
  return unknown === undefined ? { passes: [pass] } : { passes: [pass], unknown };
}

export function reasoningTokens(answer: JsonObject): number {
  return asCount(asObject(answer['usageMetadata'])?.['thoughtsTokenCount']) ?? 0;
}

function ofModality(details: unknown, modality: string): number {
  let tokens = 0;
  for (const each of asArray(details)) {
    const detail = asObject(each);
    if (detail?.['modality'] === modality) tokens += asCount(detail['tokenCount']) ?? 0;
  }
  return tokens;
}
