import type { Reporting } from '../catalog/catalog';
import { parseUsd } from '../money';
import { type CredentialReading, readSecret } from './credentials';
import type { LocatedProblem } from './problems';
import type { ServiceEndpointSettings } from './schema';

/** The vendors whose reports the gateway can read, by the adapter that speaks their dialect. */
const VENDOR_OF_ADAPTER: Readonly<Record<string, Reporting['vendor']>> = {
  messages: 'anthropic',
  chat: 'openai',
  embeddings: 'openai',
};

/** Returns the place of the vendor's reports; undefined when they are not read or misconfigured. Adds mistakes to the problems. */
export function readReporting(
  upstream: readonly string[],
  { reporting, adapter, url, credentials = [] }: ServiceEndpointSettings,
  reading: CredentialReading,
): Reporting | undefined {
  if (reporting === undefined) return undefined;
  const path = [...upstream, 'reporting'];
  const { problems } = reading;
  const credential = readSecret(reporting.credential, reading);
  if ('problem' in credential)
    problems.push({ path: [...path, 'credential', credential.at], message: credential.problem });
  const [first = ''] = [adapter].flat();
  const vendor = reporting.vendor ?? VENDOR_OF_ADAPTER[first];
  if (vendor === undefined)
    problems.push({
      path,
      message: `add \`vendor\`: the adapter "${first}" does not determine the vendor of the reports`,
    });
  if (reporting.apiKeyId !== undefined && credentials.length > 1)
    problems.push({ path: [...path, 'apiKeyId'], message: 'names one key, but the upstream has several credentials' });
  const base = reporting.url ?? url;
  if (!URL.canParse(base)) problems.push({ path: [...path, 'url'], message: 'is not a valid address' });
  const alarmAboveE8 = readUsd([...path, 'alarmAboveUsd'], reporting.alarmAboveUsd, problems);
  if (vendor === undefined || !URL.canParse(base)) return undefined;
  return {
    vendor,
    url: new URL(base),
    credential: 'value' in credential ? credential.value : undefined,
    missing: 'missing' in credential ? credential.missing : undefined,
    apiKeyId: reporting.apiKeyId,
    workspaceId: reporting.workspaceId,
    alarmAboveE8,
  };
}

function readUsd(path: readonly string[], amount: number | string, problems: LocatedProblem[]): bigint {
  try {
    return parseUsd(String(amount));
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    problems.push({ path: [...path], message: error.message });
    return 0n;
  }
}
