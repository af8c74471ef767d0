// Browsers that Playwright cannot control in the versions of the distribution (Firefox and WebKit of
// Debian), over WebDriver (W3C).
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort, Program } from './programs';

export type Engine = 'firefox' | 'webkit';

interface Driver {
  command(port: number): string[];
  /** Whether the browser needs a display, because it has no headless mode. */
  needsDisplay: boolean;
  capabilities: object;
  /** Matches error messages of pages in the driver's output; undefined if the driver does not print them. */
  errorPattern?: RegExp;
}

const DRIVERS: Record<Engine, Driver> = {
  firefox: {
    command: (port) => ['geckodriver', '--port', `${port}`, '--binary', '/usr/bin/firefox-esr'],
    needsDisplay: false,
    capabilities: {
      browserName: 'firefox',
      'moz:firefoxOptions': { args: ['-headless'], prefs: { 'devtools.console.stdout.content': true, 'intl.accept_languages': 'en-US' } },
    },
    // Firefox's own components also log warnings, with a name (`console.error: RSLoader: …`); messages of pages are
    // quoted. A module fails to load if its page was left before.
    errorPattern: /^(console\.error: (?!\w+: ).*|JavaScript (error|warning): (?!.*error loading dynamically imported module).*http:\/\/.*)$/gm,
  },
  webkit: {
    command: (port) => ['WebKitWebDriver', `--port=${port}`, '--host=127.0.0.1'],
    needsDisplay: true,
    capabilities: {
      browserName: 'MiniBrowser',
      'webkitgtk:browserOptions': { binary: '/usr/lib/x86_64-linux-gnu/webkit2gtk-4.1/MiniBrowser', args: ['--automation'] },
    },
  },
};

const ELEMENT = 'element-6066-11e4-a52e-4f735466cecf';

/** One window of a browser. */
export class Browser {
  private constructor(private readonly driver: Driver, private readonly programs: Program[], private readonly home: string) {}

  private session = '';

  static async start(engine: Engine): Promise<Browser> {
    const driver = DRIVERS[engine];
    const browser = new Browser(driver, [], mkdtempSync(join(tmpdir(), `simpletuner-${engine}-`)));
    try {
      await browser.open(driver.needsDisplay ? await browser.display() : {});
      return browser;
    } catch (error) {
      await browser.stop();
      throw error;
    }
  }

  private program(name: string, args: string[], env: Record<string, string>): Program {
    const program = new Program(name, name, args, env, join(this.home, `${name}.log`), '');
    this.programs.unshift(program);
    return program;
  }

  /** Starts a virtual display, which chooses and prints its number. */
  private async display(): Promise<Record<string, string>> {
    const display = this.program('Xvfb', ['-displayfd', '1', '-screen', '0', '1280x1024x24', '-nolisten', 'tcp'], {});
    const number = () => /^\d+$/m.exec(display.log())?.[0];
    await display.until('up', async () => number() !== undefined);
    return { DISPLAY: `:${number()}` };
  }

  private async open(env: Record<string, string>): Promise<void> {
    const port = await freePort();
    const [name, ...args] = this.driver.command(port) as [string, ...string[]];
    const driver = this.program(name, args, { HOME: this.home, XDG_RUNTIME_DIR: this.home, LANG: 'C.UTF-8', ...env });
    const address = `http://127.0.0.1:${port}`;
    await driver.until('ready', () => fetch(`${address}/status`).then((response) => response.ok, () => false));
    const capabilities = { alwaysMatch: this.driver.capabilities };
    const { sessionId } = await send<{ sessionId: string }>('POST', `${address}/session`, { capabilities });
    this.session = `${address}/session/${sessionId}`;
  }

  /** Opens an address. */
  async goto(url: string): Promise<void> {
    // WebKit reports a load that this one interrupts as an error without a message. The new page loads all the same; tests check where they are.
    await send('POST', `${this.session}/url`, { url }).catch((error: Error) => {
      if (!error.message.endsWith('/url: unknown error: ')) throw error;
    });
  }

  /** Returns the result of a script in the page. */
  run<T>(script: string, ...args: unknown[]): Promise<T> {
    return send<T>('POST', `${this.session}/execute/sync`, { script, args });
  }

  /** Types into the element that matches the selector. */
  async type(selector: string, text: string): Promise<void> {
    await send('POST', `${await this.element(selector)}/value`, { text });
  }

  async click(selector: string): Promise<void> {
    await send('POST', `${await this.element(selector)}/click`, {});
  }

  /** Returns the error messages of all pages so far, or `undefined` if they are unknown. */
  consoleErrors(): string[] | undefined {
    const { errorPattern } = this.driver;
    return errorPattern && (this.programs[0]?.log().match(errorPattern) ?? []);
  }

  /** Ends the browser, then its driver. */
  async stop(): Promise<void> {
    if (this.session) await send('DELETE', this.session);
    for (const program of this.programs) await program.stop();
    rmSync(this.home, { recursive: true, force: true, maxRetries: 5 });
  }

  private async element(selector: string): Promise<string> {
    const found = await send<Record<string, string>>('POST', `${this.session}/element`, { using: 'css selector', value: selector });
    return `${this.session}/element/${found[ELEMENT]}`;
  }
}

async function send<T>(method: string, address: string, body?: object): Promise<T> {
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(address, { method, headers, ...(body && { body: JSON.stringify(body) }) });
  const { value } = (await response.json()) as { value: T & { error?: string; message?: string } };
  if (!response.ok) throw new Error(`${method} ${address}: ${value.error}: ${value.message}`);
  return value;
}
