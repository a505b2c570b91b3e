import { openConsole, type TestConsole } from '../support/console-page';
import { alerts } from './alerts';
import { journey } from './journey';
import { pages } from './pages';
import { sandboxes } from './sandboxes';
import { sessions } from './sessions';
import { team } from './team';

/** All stories share one gateway and one browser. */
describe('the console in a real browser', function () {
  this.timeout(120_000);
  let opened: TestConsole;

  before(async function () {
    this.timeout(180_000);
    opened = await openConsole();
  });
  after(() => opened?.stop());

  const the = () => opened;
  journey(the);
  sessions(the);
  sandboxes(the);
  team(the);
  alerts(the);
  pages(the);
});
