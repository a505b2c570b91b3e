import { join } from 'node:path';
import { defineConfig } from 'vite';

/** Browsers that know `light-dark()`: the stylesheet is written in it. */
const BROWSERS = ['chrome123', 'firefox120', 'safari17.5'];

/**
 * The mode names the page: `console.tsx` becomes `dist/console/`, and `operator.tsx` becomes `dist/operator/`. Their files are
 * named by their content, nothing is inline, nothing from elsewhere.
 */
export default defineConfig(({ mode }) => ({
  root: import.meta.dirname,
  base: `/${mode}/`,
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    outDir: join(import.meta.dirname, '../dist', mode),
    emptyOutDir: true,
    target: BROWSERS,
    cssTarget: BROWSERS,
    // A data: address would be a hole in the content security policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
}));
