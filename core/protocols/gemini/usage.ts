import { asObject, asText, type JsonObject } from '../../base/json-values';
import { UNKNOWN_USAGE, type Usage } from '../../catalog/usage';
import { usageOfReport, usageReader } from '../usage-report';

/**
 * The member names of Gemini's usage reports (hexdocs.pm/geminix, UsageMetadata, read 2026-11). The prompt count includes cached tokens.
 * The output count excludes thoughts, as users have reported.
 */
const readReport = usageReader({
  counts: {
    input: { at: ['promptTokenCount'] },
    toolUse: { beside: 'input', at: ['toolUsePromptTokenCount'] },
    cacheRead: { in: 'input', at: ['cachedContentTokenCount'] },
    audioCacheRead: { in: 'cacheRead', at: ['cacheTokensDetails[modality=AUDIO].tokenCount'] },
    audioInput: { in: 'input', at: ['promptTokensDetails[modality=AUDIO].tokenCount'], less: 'audioCacheRead' },
    output: { at: ['candidatesTokenCount'] },
    // Vertex AI has also reported thoughts inside the output count.
    reasoning: { beside: 'output', at: ['thoughtsTokenCount'] },
    imageOutput: { in: 'output', at: ['candidatesTokensDetails[modality=IMAGE].tokenCount'] },
  },
  total: 'totalTokenCount',
  free: ['toolUsePromptTokensDetails.tokenCount'],
});

/** Reads the usage of an answer, which the vendor reports as one run of the model. The vendor omits counts that are 0. */
export function readGeminiUsage(answer: JsonObject): Usage {
  const report = asObject(answer['usageMetadata']);
  if (report === undefined) return UNKNOWN_USAGE;
  const isWhole = report['candidatesTokenCount'] !== undefined;
  const read = readReport(isWhole ? report : { ...report, candidatesTokenCount: 0 });
  const model = asText(answer['modelVersion']) || undefined;
  return usageOfReport(read, [{ model, counts: read.counts }]);
}
