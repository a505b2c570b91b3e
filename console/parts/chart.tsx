import { effect } from '@preact/signals';
import { useEffect, useRef, useState } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { showShortCount } from '../numbers';
import { theme } from '../theme';

interface ChartSeries {
  readonly name: string;
  /** The values as numbers for drawing only, null where there is none. `format` returns the exact value of a point. */
  readonly values: readonly (number | null)[];
}

interface Props {
  /** A description of the chart for screen readers. */
  readonly label: string;
  /** The name of each point, in the order of the series' values. */
  readonly names: readonly string[];
  /** The short names of the points for the axis. The chart draws only some of them, and never an empty one. */
  readonly ticks: readonly string[];
  readonly series: readonly ChartSeries[];
  /** `stack` draws stacked bars, `lines` a line for each series. */
  readonly kind: 'stack' | 'lines';
  readonly height: number;
  readonly format: (series: number, point: number) => string;
  /** Formats the sum of all series at a point. Absent if the series do not add up. */
  readonly formatSum?: (point: number) => string;
  readonly axis: (value: number) => string;
}

/** The point under the pointer, and where its tooltip stands. */
interface Pointed {
  readonly point: number;
  readonly left: number;
  /** Whether the tooltip must stand to the left of the point, because there is more room on that side. */
  readonly isFarRight: boolean;
}

/** The number of colors in the palette. The last one is gray and serves all further series. */
const COLOURS = 8;
const colourName = (index: number) => `--series-${Math.min(index, COLOURS - 1) + 1}`;

/** A chart drawn by uPlot in the colors of the current theme. */
export function Chart(props: Props) {
  const frame = useRef<HTMLDivElement>(null);
  const latest = useRef(props);
  latest.current = props;
  const plot = useRef<uPlot | undefined>(undefined);
  const [pointed, setPointed] = useState<Pointed>();
  const { kind, height, series, label } = props;

  // biome-ignore lint/correctness/useExhaustiveDependencies: another kind or number of series needs a new plot
  useEffect(() => {
    const place = frame.current;
    if (place === null) return;
    const made = new uPlot(optionsOf(latest, place.clientWidth, setPointed), dataOf(latest.current), place);
    plot.current = made;
    const observer = new ResizeObserver(() => made.setSize({ width: place.clientWidth, height }));
    observer.observe(place);
    const dark = window.matchMedia('(prefers-color-scheme: dark)');
    const redraw = () => made.redraw(false, true);
    dark.addEventListener('change', redraw);
    const stop = effect(() => {
      if (theme.value !== undefined) redraw();
    });
    return () => {
      stop();
      dark.removeEventListener('change', redraw);
      observer.disconnect();
      made.destroy();
    };
  }, [kind, height, series.length]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: the plot reads the newest props
  useEffect(() => plot.current?.setData(dataOf(latest.current)), [props.series, props.names]);

  return (
    <div class="chart">
      <div ref={frame} class="chart-frame" role="img" aria-label={label} style={{ height: `${height}px` }} />
      {pointed !== undefined && props.names[pointed.point] !== undefined && <Tip {...props} {...pointed} />}
    </div>
  );
}

function Tip({ names, series, format, formatSum, point, left, isFarRight }: Props & Pointed) {
  const shown = series
    .map((each, index) => ({ name: each.name, index, value: each.values[point] ?? null }))
    .filter(({ value }) => value !== null && value !== 0);
  return (
    <div class={isFarRight ? 'chart-tip is-left' : 'chart-tip'} style={{ left: `${left}px` }} aria-hidden="true">
      <p class="chart-tip-head">
        <span>{names[point]}</span>
        {formatSum !== undefined && <strong class="figure">{formatSum(point)}</strong>}
      </p>
      {shown.map(({ name, index }) => (
        <p key={index}>
          <Swatch of={index} />
          <span class="cut">{name}</span>
          <span class="figure">{format(index, point)}</span>
        </p>
      ))}
      {shown.length === 0 && <p class="faint">Nothing</p>}
    </div>
  );
}

function Swatch({ of }: { readonly of: number }) {
  return <span class="swatch" style={{ background: `var(${colourName(of)})` }} aria-hidden="true" />;
}

/** A placeholder for a chart that is loading. */
export function ChartBone({ height }: { readonly height: number }) {
  return <div class="chart-bone" style={{ height: `${height}px` }} />;
}

/** The legend of a chart: each series with its color, name and value. */
export function Legend({ items }: { readonly items: readonly { readonly name: string; readonly value?: string }[] }) {
  return (
    <ul class="legend">
      {items.map(({ name, value }, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: two items may have the same name
        <li key={index}>
          <Swatch of={index} />
          <span class="cut">{name}</span>
          {value !== undefined && <span class="quiet figure">{value}</span>}
        </li>
      ))}
    </ul>
  );
}

/** Returns the plot's data. In a stack the highest bar comes first, so that uPlot draws the lower bars over it. */
function dataOf({ kind, series, names }: Props): uPlot.AlignedData {
  const points = names.map((_, index) => index);
  if (kind === 'lines') return [points, ...series.map((each) => [...each.values])];
  const heights: number[][] = [];
  for (const each of series) {
    const below = heights.at(-1);
    heights.push(points.map((point) => (below?.[point] ?? 0) + (each.values[point] ?? 0)));
  }
  return [points, ...heights.reverse()];
}

function optionsOf(
  latest: { readonly current: Props },
  width: number,
  point: (pointed: Pointed | undefined) => void,
): uPlot.Options {
  const { kind, height, series } = latest.current;
  const isStack = kind === 'stack';
  const bars = uPlot.paths.bars?.({ size: [0.72, 56], gap: 0 });
  const drawn = series.map((_, index): uPlot.Series => {
    const colour = () => colourOf(colourName(isStack ? series.length - 1 - index : index));
    return isStack
      ? { fill: colour, width: 0, points: { show: false }, ...(bars !== undefined && { paths: bars }) }
      : { stroke: colour, width: 1.75, points: { size: 4, fill: colour } };
  });
  const quiet = () => colourOf('--text-3');
  const line = () => colourOf('--line');
  const font = '11px Inter, ui-sans-serif, system-ui, sans-serif';
  return {
    width,
    height,
    legend: { show: false },
    padding: [10, 8, 0, 0],
    cursor: { y: false, drag: { setScale: false, x: false, y: false }, points: { show: !isStack } },
    scales: {
      x: { time: false, range: () => [-0.6, Math.max(latest.current.names.length - 0.4, 0.6)] },
      y: { range: (_, __, top) => [0, top > 0 ? top * 1.08 : 1] },
    },
    axes: [
      {
        stroke: quiet,
        font,
        size: 26,
        gap: 6,
        grid: { show: false },
        ticks: { show: false },
        splits: (plot) => tickPlaces(latest.current.ticks, plot.width),
        values: (_, places) => places.map((each) => latest.current.ticks[each] ?? ''),
      },
      {
        stroke: quiet,
        font,
        size: (_, values) => 18 + 6.2 * Math.max(3, ...(values ?? []).map((each) => each.length)),
        gap: 6,
        space: 38,
        grid: { stroke: line, width: 1 },
        ticks: { show: false },
        values: (_, values) => values.map((each) => latest.current.axis(each)),
      },
    ],
    series: [{}, ...drawn],
    hooks: {
      setCursor: [
        (plot) => {
          const { idx, left = -1 } = plot.cursor;
          if (typeof idx !== 'number' || left < 0) return point(undefined);
          const at = plot.over.offsetLeft + plot.valToPos(idx, 'x');
          point({ point: idx, left: at, isFarRight: at > plot.width * 0.6 });
        },
      ],
    },
  };
}

/** Chooses the positions of the drawn axis labels, few enough that they do not touch. */
function tickPlaces(ticks: readonly string[], width: number): number[] {
  const apart = (84 / width) * ticks.length;
  const places = ticks.flatMap((words, place) => (words === '' ? [] : [place]));
  // Drops the first label of the axis if it is too close to the second, because the first day may have only a few hours.
  if ((places[1] ?? apart) - (places[0] ?? 0) < apart / 2) places.shift();
  const step = Math.max(1, Math.ceil(places.length / Math.max(2, Math.floor(width / 84))));
  return places.filter((_, index) => index % step === 0);
}

/** Returns the color of a CSS custom property in the current theme, for the canvas. */
function colourOf(property: string): string {
  const probe = document.createElement('span');
  probe.style.color = `var(${property})`;
  document.body.append(probe);
  const colour = getComputedStyle(probe).color;
  probe.remove();
  return colour;
}

/** Formats round USD amounts for an axis. Floating-point numbers suffice here, because no bill depends on them. */
export function axisUsd(value: number): string {
  if (value === 0) return '$0';
  if (value >= 1_000) return `$${Number((value / 1_000).toPrecision(3))}k`;
  return `$${Number(value.toPrecision(3)).toFixed(value < 1 ? decimalsOf(value) : Number.isInteger(value) ? 0 : 2)}`;
}

function decimalsOf(value: number): number {
  return Math.min(8, Math.max(2, 1 - Math.floor(Math.log10(value))));
}

/** Formats whole numbers for an axis. */
export function axisCount(value: number): string {
  return Number.isInteger(value) ? showShortCount(value) : '';
}
