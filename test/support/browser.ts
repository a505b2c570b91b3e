import { type Browser, chromium } from 'playwright-core';
import { findProgram } from './programs';

/** A real Chromium without a window, with an empty profile of its own, that asks nobody but the pages it is sent to. */
export function startBrowser(): Promise<Browser> {
  return chromium.launch({
    executablePath: findProgram('chromium'),
    args: [
      '--headless',
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  });
}
