import { pluginManifest } from '../../core/gateway/manifest';
import invoices from '.';

export = pluginManifest(invoices);
