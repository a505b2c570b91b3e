import { render } from 'preact';
import '../style/tokens.css';
import '../style/base.css';
import '../style/controls.css';
import '../style/shell.css';
import '../style/panels.css';
import '../style/tables.css';
import '../style/chart.css';
import '../style/operator.css';
import { startRouter } from '../router';
import { findSession } from './session';
import { Shell } from './shell';

startRouter();
void findSession();

const page = document.getElementById('page');
if (page !== null) render(<Shell />, page);
