import { Badge, type Tone } from '../../parts/badge';
import type { UsageRecord } from '../../shapes';

export function Status({ record }: { readonly record: Pick<UsageRecord, 'status' | 'errorCode'> }) {
  const { status, errorCode } = record;
  return (
    <span title={errorCode ?? undefined}>
      <Badge tone={toneOf(status, errorCode)}>
        <span class="figure">{status}</span>
        {/* A broken stream keeps the status that was sent. */}
        {status < 400 && errorCode !== null && <span class="unseen"> but {errorCode}</span>}
      </Badge>
    </span>
  );
}

function toneOf(status: number, errorCode: string | null): Tone {
  if (status >= 500) return 'bad';
  return status >= 400 || errorCode !== null ? 'warn' : 'good';
}
