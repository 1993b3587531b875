# Written from packaging/manifest.toml by exa-mcp-packaging.
class ExaMcpServer < Formula
  desc "MCP server for the whole Exa API: search, contents, answers, agents, Websets"
  homepage "https://github.com/exa-mcp-server/exa-mcp-server"
  version "0.2.0"
  license "MIT"

  on_macos do
    on_arm do
      url "https://github.com/exa-mcp-server/exa-mcp-server/releases/download/v0.2.0/exa-mcp-server-aarch64-apple-darwin.tar.gz"
      sha256 "@exa-mcp-server-aarch64-apple-darwin.tar.gz@"
    end
    on_intel do
      url "https://github.com/exa-mcp-server/exa-mcp-server/releases/download/v0.2.0/exa-mcp-server-x86_64-apple-darwin.tar.gz"
      sha256 "@exa-mcp-server-x86_64-apple-darwin.tar.gz@"
    end
  end

  on_linux do
    on_arm do
      url "https://github.com/exa-mcp-server/exa-mcp-server/releases/download/v0.2.0/exa-mcp-server-aarch64-unknown-linux-gnu.tar.gz"
      sha256 "@exa-mcp-server-aarch64-unknown-linux-gnu.tar.gz@"
    end
    on_intel do
      url "https://github.com/exa-mcp-server/exa-mcp-server/releases/download/v0.2.0/exa-mcp-server-x86_64-unknown-linux-gnu.tar.gz"
      sha256 "@exa-mcp-server-x86_64-unknown-linux-gnu.tar.gz@"
    end
  end

  def install
    bin.install "exa-mcp-server"
    generate_completions_from_executable(bin/"exa-mcp-server", "completions")
  end

  test do
    assert_match "exa-mcp-server #{version}", shell_output("#{bin}/exa-mcp-server --version")
    system bin/"exa-mcp-server", "--sandbox", "tools"
  end
end
