import { UNKNOWN_USAGE, type Usage, usageOf } from '../../catalog/usage';
import { asCount, asObject, asText, type JsonObject } from '../../json-values';
import { unknownNumbers } from '../unknown-numbers';

/** Known numbers of a usage report: charged, or sums of charged numbers. */
const KNOWN: ReadonlySet<string> = new Set(['prompt_tokens', 'total_tokens']);

export function readUsage(answer: JsonObject): Usage {
  const usage = asObject(answer['usage']);
  const input = asCount(usage?.['prompt_tokens']);
  if (usage === undefined || input === undefined) return UNKNOWN_USAGE;
  const [pass = { counts: new Map() }] = usageOf({ input, output: 0 }).passes;
  const unknown = unknownNumbers(usage, KNOWN);
  const passes = [{ ...pass, model: asText(answer['model']) || undefined }];
  return unknown === undefined ? { passes } : { passes, unknown };
}
