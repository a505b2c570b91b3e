import { pluginManifest } from '../../core/express-gateway';
import openapi from '.';

export = pluginManifest(openapi);
