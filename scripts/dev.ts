import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { createServer, type Plugin, type ProxyOptions } from 'vite';
import { ROOT, run } from './packed.ts';

/**
 * `npm run dev [-- AGENTS_FILE]`: `troupe dev` from the sources, started again whenever one of them changes, and the page beside it, reloaded
 * whenever one of its files changes. `--inspect` lets a debugger attach to the server, at Node's usual port.
 */
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    port: { type: 'string', default: '4600' },
    'page-port': { type: 'string', default: '4700' },
    inspect: { type: 'boolean', default: false },
  },
});
const server = `http://127.0.0.1:${values.port}`;

// The server gives its token to a built page only.
if (!existsSync(path.join(ROOT, 'dist/web/index.html'))) run(ROOT, 'npm', ['run', '-s', 'build:web']);

/** The token and the mode that the server gives its own page. */
const served: Plugin = {
  name: 'served',
  async transformIndexHtml(html) {
    const page = await fetch(server, { headers: { accept: 'text/html' } }).then((answer) => answer.text());
    return html.replaceAll(/<meta name="troupe-(\w+)" content="[^"]*" \/>/g, (meta, name: string) => {
      const given = new RegExp(`<meta name="troupe-${name}" content="[^"]*"[^>]*>`).exec(page);
      return given?.[0] ?? meta;
    });
  },
};

/** The server checks where requests come from: this page is as its own, any other stays what it is. */
const proxied: ProxyOptions = {
  target: server,
  changeOrigin: true,
  configure(proxy) {
    proxy.on('proxyReq', (request, { headers }) => {
      if (headers.origin === `http://127.0.0.1:${values['page-port']}`) request.setHeader('origin', server);
    });
  },
};

const page = await createServer({
  configFile: path.join(ROOT, 'web/vite.config.ts'),
  plugins: [served],
  server: {
    host: '127.0.0.1',
    port: Number(values['page-port']),
    strictPort: true,
    proxy: { '/api': proxied, '/metrics': proxied, '/healthz': proxied, '/readyz': proxied },
  },
});
await page.listen();
page.printUrls();

// After the page, whose port may be taken: then nothing is left running.
const runtime = spawn(
  process.execPath,
  [
    '--watch',
    '--watch-preserve-output',
    ...(values.inspect ? ['--inspect'] : []),
    path.join(ROOT, 'src/cli.ts'),
    'dev',
    ...positionals,
    '--port',
    values.port,
  ],
  { stdio: 'inherit' },
);
const stop = (): void => {
  runtime.kill('SIGTERM');
  void page.close();
};
process.once('SIGINT', stop);
process.once('SIGTERM', stop);
runtime.once('exit', (code) => {
  process.exitCode = code ?? 0;
  void page.close();
});
