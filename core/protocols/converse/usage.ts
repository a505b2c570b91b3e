import { asObject, type JsonObject } from '../../base/json-values';
import { UNKNOWN_USAGE, type Usage } from '../../catalog/usage';
import { usageOfReport, usageReader } from '../usage-report';

/**
 * The member names of Converse's usage reports (docs.aws.amazon.com, Amazon Bedrock, TokenUsage). The input count excludes cached tokens. A
 * separate list has the tokens cached for an hour.
 */
const readReport = usageReader({
  counts: {
    input: { at: ['inputTokens'] },
    cacheRead: { beside: 'input', at: ['cacheReadInputTokens'], orSumOf: ['cacheReadInputTokenCount'] },
    cacheWrite: {
      beside: 'input',
      at: ['cacheWriteInputTokens'],
      orSumOf: ['cacheWriteInputTokenCount'],
    },
    cacheWrite1h: { in: 'cacheWrite', at: ['cacheDetails[ttl=1h].inputTokens'] },
    output: { at: ['outputTokens'] },
  },
  // The total is not read, because Amazon does not document whether it includes cached tokens.
  free: ['totalTokens'],
});

export function readConverseUsage(answer: JsonObject): Usage {
  const report = asObject(answer['usage']);
  if (report === undefined) return UNKNOWN_USAGE;
  const read = readReport(report);
  return usageOfReport(read, [{ counts: read.counts }]);
}
