import { dialectsPage } from './dialects-page';

process.stdout.write(dialectsPage());
