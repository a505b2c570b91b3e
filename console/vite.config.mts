import { join } from 'node:path';
import { defineConfig } from 'vite';

/** Browsers that know `light-dark()`: the stylesheet is written in it. */
const BROWSERS = ['chrome123', 'firefox120', 'safari17.5'];

/** `console/` becomes `dist/console/`: files named by their content, nothing inline, nothing from elsewhere. */
export default defineConfig({
  root: import.meta.dirname,
  publicDir: join(import.meta.dirname, 'public'),
  base: '/console/',
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    outDir: '../dist/console',
    emptyOutDir: true,
    target: BROWSERS,
    cssTarget: BROWSERS,
    // A data: address would be a hole in the content security policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
});
