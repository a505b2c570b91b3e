import { asObject, asText, type JsonObject } from '../../base/json-values';
import { countsOf, UNKNOWN_USAGE, type Usage } from '../../catalog/usage';
import { usageReader } from '../usage-report';

const readReport = usageReader({ counts: { input: { at: ['prompt_tokens'] } }, total: 'total_tokens', free: [] });

export function readEmbeddingsUsage(answer: JsonObject): Usage {
  const { counts, ...read } = readReport(asObject(answer['usage']) ?? {});
  const input = counts.get('input');
  if (input === undefined) return UNKNOWN_USAGE;
  const pass = { model: asText(answer['model']) || undefined, counts: countsOf({ input, output: 0 }) };
  return { passes: [pass], ...read };
}
