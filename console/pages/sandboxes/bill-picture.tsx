import { exactUsd } from '../../money';
import type { Period, SandboxRecord, Segment } from '../../shapes';
import { showClock, showDay, showMoment, showSeconds } from '../../times';
import { colourOf, isFinal, toWords } from './states';

type Pictured = Pick<SandboxRecord, 'createdAt' | 'observedState' | 'events' | 'usageSegments' | 'billingPeriods'>;

interface Bar {
  readonly key: string;
  readonly fromMs: number;
  readonly toMs: number;
  readonly colour: string;
  readonly look?: string;
  readonly text: string;
  readonly title: string;
}

const TICKS = 5;

/** A chart of a sandbox's life over time. It has one lane each for states, usage and paid periods. The tables below the chart repeat each lane. */
export function BillPicture({ record }: { readonly record: Pictured }) {
  const nowMs = Date.now();
  const [beginMs, endMs] = spanOf(record, nowMs);
  const share = (ms: number) => Math.min(100, Math.max(0, ((ms - beginMs) / (endMs - beginMs)) * 100));
  const lanes = [
    { name: 'State', bars: stateBars(record, nowMs) },
    { name: 'Usage', bars: record.usageSegments.map((each) => segmentBar(each, nowMs)) },
    { name: 'Paid', bars: record.billingPeriods.map((each) => periodBar(each)) },
  ];
  const showTick = endMs - beginMs > 36 * 3_600_000 ? showDay : endMs - beginMs > 600_000 ? showClock : showSeconds;
  return (
    <div
      class="bill stack"
      role="img"
      aria-label="State, usage and billing periods over time; the tables below have the figures"
    >
      {lanes.map(({ name, bars }) => (
        <div class="lane" key={name}>
          <span class="lane-name">{name}</span>
          <div class="lane-bars">
            {bars.map(({ key, fromMs, toMs, colour, look = '', text, title }) => (
              <span
                key={key}
                class={`bar ${look}`}
                title={title}
                style={{
                  '--bar': colour,
                  left: `${share(fromMs)}%`,
                  width: `${Math.max(0.35, share(toMs) - share(fromMs))}%`,
                }}
              >
                <span class="cut">{text}</span>
              </span>
            ))}
            {!isFinal(record) && endMs > nowMs && <span class="now" style={{ left: `${share(nowMs)}%` }} />}
          </div>
        </div>
      ))}
      <div class="lane ticks">
        <span class="lane-name" />
        <div class="lane-bars">
          {Array.from({ length: TICKS }, (_, index) => {
            const at = index / (TICKS - 1);
            return (
              <span key={at} class="tick figure" style={{ left: `${at * 100}%` }}>
                {showTick(beginMs + at * (endMs - beginMs))}
              </span>
            );
          })}
        </div>
      </div>
    </div>
  );
}

/** Returns the start and end of the chart in ms: from the first shown time to the end of the last paid period. */
function spanOf(record: Pictured, nowMs: number): readonly [number, number] {
  const { events, usageSegments, billingPeriods } = record;
  const firsts = [events[0]?.createdAt, usageSegments[0]?.startsAt, billingPeriods[0]?.startedAt];
  const known = firsts.filter((each) => each !== undefined).map((each) => Date.parse(each));
  const beginMs = Math.min(...(known.length === 0 ? [Date.parse(record.createdAt)] : known));
  const lasts = [
    events.at(-1)?.createdAt,
    usageSegments.at(-1)?.endsAt,
    ...billingPeriods.map((each) => each.endedAt ?? each.coversUntil),
  ];
  const ends = lasts.filter((each) => each !== undefined && each !== null).map((each) => Date.parse(each));
  const endMs = Math.max(beginMs + 1_000, ...ends, ...(isFinal(record) ? [] : [nowMs]));
  return [beginMs, endMs];
}

function stateBars(record: Pictured, nowMs: number): readonly Bar[] {
  // Keeps only events that change the state, because several events may report the same one.
  const changes = record.events.filter(({ currentState }, at, all) => currentState !== all[at - 1]?.currentState);
  const ends = changes.slice(1).map(({ createdAt }) => Date.parse(createdAt));
  return changes.flatMap(({ id, currentState, createdAt }, at) => {
    if (currentState === 'TERMINATED' || currentState === 'FAILED') return [];
    const fromMs = Date.parse(createdAt);
    const toMs = ends[at] ?? (isFinal(record) ? fromMs : nowMs);
    const text = toWords(currentState);
    return [{ key: id, fromMs, toMs, ...paintOf(currentState), text, title: `${text} from ${showMoment(fromMs)}` }];
  });
}

function paintOf(state: string, isOpen = false) {
  return { colour: colourOf(state), look: `${state === 'UNKNOWN' ? 'is-unknown' : ''}${isOpen ? ' is-open' : ''}` };
}

function segmentBar({ id, state, startsAt, endsAt, amount, hourlyUsd }: Segment, nowMs: number): Bar {
  const isOpen = endsAt === null;
  return {
    key: id,
    fromMs: Date.parse(startsAt),
    toMs: isOpen ? nowMs : Date.parse(endsAt),
    ...paintOf(state, isOpen),
    text: exactUsd(amount),
    title: `${toWords(state)} at ${exactUsd(hourlyUsd)} per hour: ${exactUsd(amount)}${isOpen ? ' so far' : ''}`,
  };
}

function periodBar({ id, startedAt, endedAt, coversUntil, amount, reservedAmount }: Period): Bar {
  const isOpen = amount === null;
  return {
    key: id,
    fromMs: Date.parse(startedAt),
    toMs: Date.parse(endedAt ?? coversUntil),
    colour: 'var(--series-2)',
    look: isOpen ? 'is-open' : '',
    text: isOpen ? `${exactUsd(reservedAmount)} held` : exactUsd(amount),
    title: isOpen ? `Open: ${exactUsd(reservedAmount)} held` : `Settled: ${exactUsd(amount)}`,
  };
}
