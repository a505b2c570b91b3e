import { pluginManifest } from '../../core/gateway/manifest';
import openapi from '.';

export = pluginManifest(openapi);
