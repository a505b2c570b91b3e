/** Line icons on a 16 × 16 grid, drawn in the color of the surrounding text. */
const PATHS = {
  overview: 'M2.5 9.5h4v4h-4zM2.5 2.5h4v4h-4zM9.5 2.5h4v4h-4zM9.5 9.5h4v4h-4z',
  usage: 'M2.5 13.5v-4M6.2 13.5v-8M9.8 13.5v-6M13.5 13.5v-11',
  keys: 'M10.3 9.2a3.5 3.5 0 1 0-3.5-3.5c0 .4.1.8.2 1.1L2.5 11.3v2.2h2.6v-1.7h1.7v-1.7l1-1a3.4 3.4 0 0 0 2.5.1zM11 5h.01',
  sandboxes: 'M8 1.8 13.7 5v6L8 14.2 2.3 11V5zM2.5 5.1 8 8.2l5.5-3.1M8 8.2v5.8',
  upstreams: 'M2.5 3h11v4h-11zM2.5 9h11v4h-11zM5 5h.01M5 11h.01',
  rollouts: 'M2.5 13.5h11M4 13.5v-3h2.5v3M6.5 13.5v-6H9v6M9 13.5v-10h2.5v10',
  configuration: 'M2.5 4.5h6M11.5 4.5h2M10 3v3M2.5 8h2M7.5 8h6M6 6.5v3M2.5 11.5h6M11.5 11.5h2M10 10v3',
  catalogue: 'M2.5 2.5h5l6 6-5 5-6-6zM5.3 5.3h.01',
  ledger: 'M3.5 2.5h9v11h-9zM6 2.5v11M8.3 5.5h2.2M8.3 8h2.2',
  audit: 'M4 2.5h6l2.5 2.5v8.5H4zM6.2 7h3.8M6.2 9.5h3.8',
  copy: 'M5.5 5.5v-3h8v8h-3M2.5 5.5h8v8h-8z',
  check: 'm3 8.5 3.2 3.2L13 4.8',
  close: 'm3.5 3.5 9 9M12.5 3.5l-9 9',
  download: 'M8 2.5v8M4.8 7.6 8 10.8l3.2-3.2M2.5 13.5h11',
  columns: 'M2.5 2.5h11v11h-11zM6.2 2.5v11M9.8 2.5v11',
  plus: 'M8 3v10M3 8h10',
  search: 'M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9zM10.3 10.3l3.2 3.2',
  chevron: 'm4.5 6.2 3.5 3.6 3.5-3.6',
  right: 'm6.2 4.5 3.6 3.5-3.6 3.5',
  left: 'm9.8 4.5-3.6 3.5 3.6 3.5',
  user: 'M8 8.2a2.9 2.9 0 1 0 0-5.7 2.9 2.9 0 0 0 0 5.7zM2.6 13.7a5.5 5.5 0 0 1 10.8 0',
  team: 'M6 7.8a2.4 2.4 0 1 0 0-4.8 2.4 2.4 0 0 0 0 4.8zM1.8 13a4.3 4.3 0 0 1 8.4 0M10.4 7.6a2.1 2.1 0 1 0-.6-4.1M11.6 9.5a3.8 3.8 0 0 1 2.7 3.1',
  alerts: 'M4 11.3V7a4 4 0 1 1 8 0v4.3M2.8 11.3h10.4M6.7 13.6h2.6',
  system: 'M2.5 3h11v7.5h-11zM6 13.3h4M8 10.5v2.8',
  light:
    'M8 10.7a2.7 2.7 0 1 0 0-5.4 2.7 2.7 0 0 0 0 5.4zM8 1.5v1.3M8 13.2v1.3M1.5 8h1.3M13.2 8h1.3M3.4 3.4l.9.9M11.7 11.7l.9.9M3.4 12.6l.9-.9M11.7 4.3l.9-.9',
  dark: 'M13.3 9.6A5.8 5.8 0 0 1 6.4 2.7a5.8 5.8 0 1 0 6.9 6.9z',
  warning: 'M8 2.3 14.2 13H1.8zM8 6.4v3M8 11.2h.01',
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { readonly name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}

/** The logo, a gate; `public/mark.svg` has the same drawing. */
export function Mark() {
  return (
    <svg class="mark" viewBox="0 0 32 32" width="24" height="24" aria-hidden="true">
      <rect class="mark-ground" width="32" height="32" rx="8" />
      <path class="mark-gate" d="M10 24V13M6.5 24h7M10 15l15-6.5" />
    </svg>
  );
}
