import type { Reporting, Upstream } from '../../core/catalog/catalog';
import { fail } from '../../core/errors';
import type { Egress } from '../../core/wire/egress';
import { readAnthropicReport } from './anthropic';
import type { Days } from './days';
import { readOpenAiReport } from './openai';
import { type Report, ReportFailure } from './report';

const READERS = { anthropic: readAnthropicReport, openai: readOpenAiReport } as const;

const TIMEOUTS = { connectMs: 30_000, headersMs: 60_000, idleMs: 30_000 };

/** Reads the report of an upstream's vendor on these days. @throws CONFLICT if the upstream has no report to ask for; REPORT_UNAVAILABLE */
export async function readReport(
  egress: Egress,
  { name, allowPrivate, reporting }: Upstream,
  days: Days,
  signal?: AbortSignal,
): Promise<Report> {
  const { credential } = requireReporting(name, reporting);
  const destination = { name: `${name} reporting`, url: credential.url, allowPrivate, timeouts: TIMEOUTS };
  try {
    const source = { egress, destination, reporting: credential, signal };
    return await READERS[credential.vendor](source, days);
  } catch (error) {
    if (!(error instanceof ReportFailure)) throw error;
    const message = `The report of "${name}" could not be read: ${error.message}.`;
    throw fail('REPORT_UNAVAILABLE', { message, cause: error });
  }
}

/** @throws CONFLICT */
function requireReporting(name: string, reporting: Reporting | undefined) {
  if (reporting === undefined)
    throw fail('CONFLICT', {
      message: `The upstream "${name}" has no \`reporting\` in gateway.config.yml, so no report can be read. Add it.`,
    });
  const { credential, missing = 'its credential cannot be read' } = reporting;
  if (credential === undefined)
    throw fail('CONFLICT', { message: `The report of "${name}" cannot be read: ${missing}.` });
  return { credential: { ...reporting, credential } };
}
