import { defineConfig } from 'vite';

/** The window reaches the API through Vite's server, which leaves its own origin in the requests: see `access.cors`. */
export default defineConfig({
  root: import.meta.dirname,
  build: { target: 'es2022' },
  server: { proxy: { '/api': 'http://127.0.0.1:4600' } },
});
